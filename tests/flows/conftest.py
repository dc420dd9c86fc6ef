from collections.abc import Iterator

import pytest
from prefect.testing.utilities import prefect_test_harness


@pytest.fixture(scope="package")
def prefect_server() -> Iterator[None]:
    with prefect_test_harness(server_startup_timeout=60):
        yield
