"""Importers: whatever part of the real data sets a user has, into the store's tables.

One file a source. `intake.py` takes what they find: it keeps rows, rejects with file and line, counts, and commits.
"""
