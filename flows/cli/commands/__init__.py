"""The commands of `vina`, by what they are for."""
