"""The two processes behind decoded values: one asks the schema registry, one decodes.

A registry that is slow or hostile ends the first one only, and the schemas are kept in the console.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from math import ceil
from urllib.parse import unquote, urlsplit

from bucketlog.console.record_values import RecordValues, RegistryLimits
from bucketlog.console.schema_process import SchemaProcess
from bucketlog.console.schema_program import DECODE, FETCH
from bucketlog.console.settings import ConsoleSettings
from bucketlog.schema_registry.registry_access import RegistryAccess
from bucketlog.schema_registry.registry_connection import AUTH_VARIABLE

REGISTRY_SHARE = 0.8
"""Part of the time of a request that the registry gets: then the request ends with its reason."""
SPARE_S = 5
"""A process ends by itself this long after a request should have ended."""
ANSWER_SPARE_BYTES = 1_024


@contextmanager
def registry_values(
    access: RegistryAccess | None, settings: ConsoleSettings, now_s: Callable[[], float]
) -> Iterator[RecordValues | None]:
    """Yield the `RecordValues` of the registry, or None if `access` is None. Both processes start
    at once, and end with the context. Raises `ConfigurationError`."""
    if access is None:
        yield None
        return
    access.schemas()  # checks the settings
    request_s = settings.registry_request_ms_max / 1000
    environment = access.environment()
    common = (str(settings.registry_memory_bytes_max), str(ceil(request_s) + SPARE_S))
    program = (sys.executable, "-P", "-m", "bucketlog.console.schema_program")

    def process(name: str, *arguments: str) -> SchemaProcess:
        made = SchemaProcess(
            name,
            (*program, *arguments),
            environment,
            answer_bytes_max=settings.registry_answer_bytes_max + ANSWER_SPARE_BYTES,
            now_s=now_s,
        )
        made.start()
        return made

    with (
        closing(
            process("getting the schema", FETCH, *common, str(request_s * REGISTRY_SHARE))
        ) as one,
        closing(process("decoding the value", DECODE, *common)) as other,
    ):
        yield RecordValues(
            one,
            other,
            RegistryLimits(
                schemas=settings.registry_schemas_max,
                value_bytes=settings.registry_value_bytes_max,
                request_s=request_s,
                page_s=settings.registry_page_ms_max / 1000,
                retry_s=settings.registry_retry_ms / 1000,
            ),
            now_s=now_s,
            secrets=secrets_of(access.url, environment.get(AUTH_VARIABLE, "")),
        )


def secrets_of(urls: str, auth: str) -> list[str]:
    """Returns the texts that no page may show: passwords of the URLs and of `auth`, which is
    "user:password"."""
    found = [auth, auth.partition(":")[2]]
    for url in urls.split(","):
        info, at, _ = urlsplit(url.strip()).netloc.rpartition("@")
        if at:
            found += [info, unquote(info), info.partition(":")[2]]
            found.append(unquote(info.partition(":")[2]))
    return [secret for secret in found if secret]
