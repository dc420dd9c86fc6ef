"""The stage `pairing`: narrations vote for the article that their video shows."""
