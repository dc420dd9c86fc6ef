"""What runs in which order, on which worker, and the command `vina`. Prefect lives here and nowhere else."""
