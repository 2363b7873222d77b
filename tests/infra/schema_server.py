"""A provider that has a schema and nothing else, so that Terraform itself validates and plans the
modules on a machine that cannot fetch the real one.

It speaks the part of Terraform's plugin protocol 5 that `validate`, and `test` with a
`mock_provider`, ask for. Terraform is told where it listens (`TF_REATTACH_PROVIDERS`), and neither
looks for it elsewhere nor starts it. Invariant: it has the types that the modules use, no others; a
plan or an apply without a mock fails, since nothing here answers it.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import grpc

from bucketlog.wire.frames import uvarint
from tests.infra.provider_schema import Argument, ProviderSchema, Schema, Type, UnknownTypeError

_SERVICE = "tfplugin5.Provider"
_EMPTY_ANSWERS = (
    "Configure",
    "PrepareProviderConfig",
    "Stop",
    "ValidateDataSourceConfig",
    "ValidateResourceTypeConfig",
)
_NESTED_LIST = 2
_REGISTRIES = ("registry.terraform.io", "registry.opentofu.org")
_MESSAGE_BYTES_MAX = 64 << 20


@contextmanager
def serving(
    provider: ProviderSchema, resources: set[str], data: set[str]
) -> Iterator[dict[str, str]]:
    """Until the block is left. Gives the environment by which Terraform finds the providers; types
    that no provider knows are left out."""
    with ExitStack() as closing:
        attached = {}
        for name in ("aws", "random"):
            answer = schema_answer(provider, name, resources, data)
            port = closing.enter_context(_listening(answer))
            for registry in _REGISTRIES:
                attached[f"{registry}/hashicorp/{name}"] = {
                    "Protocol": "grpc",
                    "ProtocolVersion": 5,
                    "Pid": os.getpid(),
                    "Test": True,
                    "Addr": {"Network": "tcp", "String": f"127.0.0.1:{port}"},
                }
        yield {"TF_REATTACH_PROVIDERS": json.dumps(attached)}


@contextmanager
def _listening(schema: bytes) -> Iterator[int]:
    answers = dict.fromkeys(_EMPTY_ANSWERS, b"") | {"GetSchema": schema}
    handlers = {name: _answering(answer) for name, answer in answers.items()}
    with ThreadPoolExecutor(4) as pool:
        server = grpc.server(pool, options=[("grpc.max_send_message_length", _MESSAGE_BYTES_MAX)])
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, handlers),))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield port
        finally:
            server.stop(None).wait()


def _answering(answer: bytes) -> "grpc.RpcMethodHandler[bytes, bytes]":
    def handle(_: bytes, __: grpc.ServicerContext) -> bytes:
        return answer

    return grpc.unary_unary_rpc_method_handler(handle)


def schema_answer(
    provider: ProviderSchema, name: str, resources: set[str], data: set[str]
) -> bytes:
    """GetProviderSchema.Response of the provider `name`."""
    answer = _message(1, _schema(provider.of_provider(name)))
    for field, kinds, lookup in ((2, resources, provider.resource), (3, data, provider.data)):
        for kind, schema in _known(name, kinds, lookup):
            answer += _message(field, _text(1, kind) + _message(2, _schema(schema)))
    return answer


def _known(
    name: str, kinds: set[str], lookup: Callable[[str], Schema]
) -> Iterator[tuple[str, Schema]]:
    for kind in sorted(kinds):
        if kind.startswith(f"{name}_"):
            try:
                yield kind, lookup(kind)
            except UnknownTypeError:
                continue


def _schema(schema: Schema) -> bytes:
    return _message(2, _block(schema.structs, schema.root, schema.computed))


def _block(
    structs: Mapping[str, Mapping[str, Argument]], struct: str, computed: Mapping[str, Type]
) -> bytes:
    block = b""
    for name, argument in structs[struct].items():
        if argument.is_block and argument.struct is not None:
            inner = _text(1, name) + _message(2, _block(structs, argument.struct, {}))
            inner += _number(3, _NESTED_LIST)
            inner += _number(4, int(argument.required))
            inner += _number(5, 0 if argument.many else 1)
            block += _message(3, inner)
        else:
            told = _text(1, name) + _message(2, json.dumps(argument.type).encode())
            if argument.required:
                told += _number(4, 1)
            else:
                told += _number(5, 1) + _number(6, int(bool(computed)))
            block += _message(2, told)
    for name, kind in computed.items():
        told = _text(1, name) + _message(2, json.dumps(kind).encode())
        block += _message(2, told + _number(6, 1))
    return block


def _number(field: int, value: int) -> bytes:
    """A varint of protobuf; 0 is left out, as there."""
    return uvarint(field << 3) + uvarint(value) if value else b""


def _text(field: int, value: str) -> bytes:
    return _message(field, value.encode())


def _message(field: int, value: bytes) -> bytes:
    return uvarint(field << 3 | 2) + uvarint(len(value)) + value
