"""The packages that bucketlog's extras install, and which extra installs each of them.

`pip install bucketlog` installs only the SDK. Invariant: if a package of an extra is missing, the
error is a `ConfigurationError` whose remedy is the `pip install` command with that extra.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from bucketlog.log_format.errors import ConfigurationError

PACKAGES = {
    "cli": ("rich", "typer", "yaml"),
    "replay": (
        "boto3",
        "cramjam",
        "crc32c",
        "cryptography",
        "numpy",
        "pyarrow",
        "pydantic_settings",
    ),
    "broker": (
        "aiobotocore",
        "cramjam",
        "crc32c",
        "hiredis",
        "kio",
        "ormsgpack",
        "prometheus_client",
        "pydantic_settings",
        "redis",
        "starlette",
        "uvicorn",
        "uvloop",
    ),
    "otel": ("opentelemetry",),
    "iceberg": ("pyiceberg",),
    "console": ("jinja2", "starlette", "uvicorn"),
    "top": ("prometheus_client", "textual"),
    "spark": ("py4j", "pyspark"),
}
"""Import names by extra. A package of several extras is listed under the smallest one."""


def needed(module: str, extra: str) -> Any:
    """Import `module`. Raises `ConfigurationError` if it is not installed."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise not_installed(error.name or module, extra) from error


def check_installed(of: str, *, extra: str | None = None) -> None:
    """Check that the packages of the extra `of` are installed, without importing them.

    Raises `ConfigurationError`. It names `extra`, if given, because the caller needs a larger one.
    """
    for module in PACKAGES[of]:
        if find_spec(module) is None:
            raise not_installed(module, extra or of)


def explained(error: ModuleNotFoundError) -> ConfigurationError | None:
    """The error that names the extra to install. None if no extra installs the module: then the
    import error is a defect."""
    module = (error.name or "").partition(".")[0]
    extra = next((extra for extra, modules in PACKAGES.items() if module in modules), None)
    return None if extra is None else not_installed(module, extra)


def not_installed(package: str, extra: str) -> ConfigurationError:
    return ConfigurationError(
        f"{package} is not installed", remedy=f"pip install 'bucketlog[{extra}]'"
    )
