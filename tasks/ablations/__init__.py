"""Ablations: each table trains variants of the method over some seeds, and shows them beside the paper's numbers."""
