"""Terraform, or OpenTofu in its place. These tests run last: `make test` builds and fetches what
they need in the background on a fresh machine, and waits for it where it is first needed.
"""

from pathlib import Path

import pytest

from tests.components import Components
from tests.infra.programs import INFRA, installed, run

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.is_relative_to(HERE))


@pytest.fixture(scope="session")
def terraform(components: Components) -> Path:
    path = installed("terraform", components)
    components.took_part(
        "terraform fmt and test", run([path, "version"], INFRA).stdout.split("\n")[0]
    )
    return path
