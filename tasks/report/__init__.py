"""The stage `report`: one HTML page about a run."""
