"""What all stages share: the job, stages and their parts, settings, progress, the record of runs."""
