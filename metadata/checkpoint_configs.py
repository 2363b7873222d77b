"""The configs of brokers, groups and subscriptions in a checkpoint's state, for version 10. Pure.

This part follows the state of version 9 (docs/format/checkpoint.md). A checkpoint has it only if
the log has such configs.
"""

import struct

from bucketlog.metadata.checkpoint_bytes import COUNT, StateReader, text_bytes
from bucketlog.metadata.config_facts import ConfiguredKind
from bucketlog.metadata.fold import LogState
from bucketlog.metadata.resource_configs import ResourceName

_RESOURCE = struct.Struct(">BI")


def has_resource_configs(state: LogState) -> bool:
    return bool(state.resource_configs)


def encode_resource_configs(state: LogState) -> list[bytes]:
    pieces = [COUNT.pack(len(state.resource_configs))]
    for resource in state.resource_configs:
        configs = state.resource_configs.of(resource)
        pieces += [_RESOURCE.pack(resource.kind, len(configs)), text_bytes(resource.name)]
        pieces += [text_bytes(text) for item in configs.items() for text in item]
    return pieces


def decode_resource_configs(reader: StateReader, state: LogState) -> None:
    """Decode into `state`. Raises `InvalidDataError`."""
    (count,) = reader.take(COUNT)
    reader.expect(count, _RESOURCE)
    for _ in range(count):
        kind, configs = reader.take(_RESOURCE)
        name = reader.text()
        if kind not in list(ConfiguredKind):
            raise reader.wrong(f"it has configs of a resource of kind {kind}")
        reader.expect(configs, COUNT)
        pairs = [(reader.text(), reader.text()) for _ in range(configs)]
        if not pairs or len(dict(pairs)) < len(pairs):
            raise reader.wrong("a resource has no configs, or one of them twice")
        state.resource_configs.put(ResourceName(ConfiguredKind(kind), name), dict(pairs))
    if len(state.resource_configs) != count:
        raise reader.wrong("it has a resource twice")
