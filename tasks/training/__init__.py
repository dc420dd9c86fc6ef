"""The stages `burn-in` and `rounds`: TAN*, its labels, and a student that becomes its own teacher (README.md)."""
