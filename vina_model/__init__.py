"""The networks and the mathematics, torch, numpy and gensim only: knows neither Prefect nor paths nor storage."""
