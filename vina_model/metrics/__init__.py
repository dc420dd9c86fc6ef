"""Benchmark metrics: each with a name and a version that are stored beside every number."""
