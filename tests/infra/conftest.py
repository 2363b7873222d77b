"""Terraform, or OpenTofu in its place. These tests run last: `make test` builds and fetches what
they need in the background on a fresh machine, and waits for it where it is first needed.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.infra.modules import read_module
from tests.infra.programs import INFRA, installed, run
from tests.infra.provider_schema import ProviderSchema
from tests.infra.schema_server import serving
from tests.infra.workshop import FOLDERS, Workshop
from tests.servers.components import Components

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


@pytest.fixture(scope="session")
def workshop(
    terraform: Path, components: Components, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workshop]:
    schema = ProviderSchema(installed("schemas", components))
    components.took_part("schema of Terraform's providers", schema.versions)
    copy = tmp_path_factory.mktemp("infra")
    ignored = shutil.ignore_patterns(".terraform*", "*.tfstate*")
    shutil.copytree(INFRA, copy, dirs_exist_ok=True, ignore=ignored)
    modules = [read_module(path) for path in FOLDERS.values()]
    resources = {one.kind for module in modules for one in module.resources}
    data = {one.kind for module in modules for one in module.data}
    with serving(schema, resources, data) as environment:
        yield Workshop(terraform, environment, copy)
