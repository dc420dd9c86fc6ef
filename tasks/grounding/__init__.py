"""`vina ground`: find the steps of one article in one video, and write the result as files."""
