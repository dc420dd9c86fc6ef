"""The stage `features`: one S3D vector for every second of every video file that has none yet."""
