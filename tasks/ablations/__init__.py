"""Ablations: what the parts of the method are worth, each a table over some seeds, made by one command."""
