"""Packages that an extra of ours brings, imported when they are first needed."""

from importlib import import_module
from typing import Any

from bucketlog.errors import ConfigurationError


def needed(module: str, extra: str) -> Any:
    """Raises `ConfigurationError` where it is not installed."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"{error.name} is not installed", remedy=f"pip install 'bucketlog[{extra}]'"
        ) from error
