"""The command `vina ablate` runs a Prefect flow."""

from tests.flows.conftest import prefect_server

__all__ = ["prefect_server"]
