"""The command `vina`."""
