"""Terraform, or OpenTofu in its place."""

from pathlib import Path

import pytest

from tests.components import Components
from tests.infra.programs import INFRA, installed, run


@pytest.fixture(scope="session")
def terraform(components: Components) -> Path:
    path = installed("terraform", components)
    components.took_part(
        "terraform fmt and test", run([path, "version"], INFRA).stdout.split("\n")[0]
    )
    return path
