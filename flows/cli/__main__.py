"""`python -m flows.cli`: the command `vina` without its console script."""

from flows.cli.main import entry

entry()
