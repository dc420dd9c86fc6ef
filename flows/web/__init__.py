"""The web app: `vina explore`."""
