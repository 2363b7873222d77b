"""The program that answers the calls to Terraform's providers: gRPC, in a process without tests.

gRPC's threads and forks do not mix: a process that has served gRPC may lose its children, such as
Spark's JVM. Invariant: no test imports this module, and no other module imports grpc.

Usage: `provider_process.py ANSWER...`. Each file holds one provider's GetProviderSchema.Response.
The ports, in the same order, are printed as one line of JSON. The program ends with its input.
"""

import json
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import grpc

_SERVICE = "tfplugin5.Provider"
_EMPTY_ANSWERS = (
    "Configure",
    "PrepareProviderConfig",
    "Stop",
    "ValidateDataSourceConfig",
    "ValidateResourceTypeConfig",
)
_MESSAGE_BYTES_MAX = 64 << 20


def main(paths: Sequence[str]) -> None:
    with ExitStack() as closing:
        pool = closing.enter_context(ThreadPoolExecutor(4))
        ports = []
        for path in paths:
            port, server = _listening(Path(path).read_bytes(), pool)
            closing.callback(_stop, server)
            ports.append(port)
        sys.stdout.write(f"{json.dumps(ports)}\n")
        sys.stdout.flush()
        sys.stdin.read()


def _listening(schema: bytes, pool: ThreadPoolExecutor) -> tuple[int, grpc.Server]:
    answers = dict.fromkeys(_EMPTY_ANSWERS, b"") | {"GetSchema": schema}
    handlers = {name: _answering(answer) for name, answer in answers.items()}
    server = grpc.server(pool, options=[("grpc.max_send_message_length", _MESSAGE_BYTES_MAX)])
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return port, server


def _stop(server: grpc.Server) -> None:
    server.stop(None).wait()


def _answering(answer: bytes) -> "grpc.RpcMethodHandler[bytes, bytes]":
    def handle(_: bytes, __: grpc.ServicerContext) -> bytes:
        return answer

    return grpc.unary_unary_rpc_method_handler(handle)


if __name__ == "__main__":
    main(sys.argv[1:])
