"""Benchmark metrics, as pure functions; which protocol uses which, and its version: tasks/evaluation/benchmarks.

All work on columns of numbers: videos and labels are numbered from 0 by the caller. Each is a function of the weights
that videos have, so that `bootstrap` can call it again with other weights.
"""
