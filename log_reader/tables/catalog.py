"""An Iceberg catalog, opened by PyIceberg."""

from collections.abc import Mapping

from pyiceberg.catalog import Catalog, load_catalog
from sqlalchemy.exc import DatabaseError


def open_catalog(name: str, properties: Mapping[str, str]) -> Catalog:
    """Open the catalog. A SQL catalog makes its tables if it has none, and fails if another ingest
    makes them at the same time: the second try finds them. Raises the catalog's errors."""
    try:
        return load_catalog(name, **properties)
    except DatabaseError:
        return load_catalog(name, **properties)
