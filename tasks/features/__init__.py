"""The stage `features`: one vector a second for every video file that has none. See README.md."""
