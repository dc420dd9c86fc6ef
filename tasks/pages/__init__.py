"""What people look at: pages that are one file each, and need nothing but a browser."""
