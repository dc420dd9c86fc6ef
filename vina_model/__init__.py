"""The networks and the mathematics, torch and numpy only: knows neither Prefect nor paths nor storage."""
