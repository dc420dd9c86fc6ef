"""Ablations: each table trains variants of the method over some seeds, and shows them beside the paper's numbers."""

DESCRIPTIONS = {
    "components": "narrations and steps, fixed and iterative labels, with and without narrations",
    "pathways": "pathway from steps to seconds at inference",
    "labels": "matrix that labels are read from, and their threshold",
    "selection": "how videos are paired with articles",
    "architecture": "positions and projections of steps",
    "curriculum": "what each phase of the training adds",
    "main": "both TAN* and VINA on all benchmarks (`vina results` shows them)",
}
"""What each table varies."""
