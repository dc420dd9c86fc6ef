"""Tests mirror the four packages; benchmarks stand beside them and run by `make bench`."""
