"""A provider that has a schema and nothing else, so that Terraform itself validates and plans the
modules on a machine that cannot fetch the real one.

It speaks the part of Terraform's plugin protocol 5 that `validate`, and `test` with a
`mock_provider`, ask for, in a process of its own (`provider_process.py`). Terraform finds it by
`TF_REATTACH_PROVIDERS`; it neither looks for it elsewhere nor starts it. Invariant: it has the
types that the modules use, no others. A plan or an apply without a mock fails, since nothing here
answers it.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from bucketlog.log_format.wire.frames import uvarint
from tests.infra.provider_schema import Argument, ProviderSchema, Schema, Type, UnknownTypeError

_PROGRAM = Path(__file__).with_name("provider_process.py")
_NESTED_LIST = 2
_PROVIDERS = ("aws", "random")
_REGISTRIES = ("registry.terraform.io", "registry.opentofu.org")


@contextmanager
def serving(
    provider: ProviderSchema, resources: set[str], data: set[str]
) -> Iterator[dict[str, str]]:
    """Until the block is left. Gives the environment by which Terraform finds the providers; types
    that no provider knows are left out."""
    with TemporaryDirectory(prefix="bucketlog-providers-") as folder:
        answers = [Path(folder) / name for name in _PROVIDERS]
        for path in answers:
            path.write_bytes(schema_answer(provider, path.name, resources, data))
        with subprocess.Popen(
            [sys.executable, "-P", _PROGRAM, *answers],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            ports = json.loads(process.stdout.readline())
            yield {"TF_REATTACH_PROVIDERS": json.dumps(_attached(ports, process.pid))}
            process.communicate()  # its input ends, and so does the program
            assert process.returncode == 0


def _attached(ports: list[int], pid: int) -> dict[str, object]:
    """By the address of a provider in a registry; see Terraform's TF_REATTACH_PROVIDERS."""
    return {
        f"{registry}/hashicorp/{name}": {
            "Protocol": "grpc",
            "ProtocolVersion": 5,
            "Pid": pid,
            "Test": True,
            "Addr": {"Network": "tcp", "String": f"127.0.0.1:{port}"},
        }
        for name, port in zip(_PROVIDERS, ports, strict=True)
        for registry in _REGISTRIES
    }


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
