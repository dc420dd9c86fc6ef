"""HTML pages: one file each, which need nothing but a browser. See README.md."""
