"""One schema registry for a whole run."""

from collections.abc import Iterator

import pytest

from bucketlog import SchemaRegistry
from bucketlog.log_format.errors import ConfigurationError
from tests.servers.components import Components
from tests.servers.schema_registry import Registry, registry_version, running_registry


@pytest.fixture(scope="session")
def schema_registry(
    tmp_path_factory: pytest.TempPathFactory, components: Components
) -> Iterator[Registry]:
    """One for a whole run: use fresh subjects."""
    try:
        version = registry_version()
    except ConfigurationError as error:
        components.missing("the schema registry", error.remedy)
        raise
    with running_registry(tmp_path_factory.mktemp("registry") / "log") as registry:
        components.took_part("Apicurio Registry", version)
        yield registry


@pytest.fixture
def registry(schema_registry: Registry) -> SchemaRegistry:
    return SchemaRegistry(schema_registry.url)
