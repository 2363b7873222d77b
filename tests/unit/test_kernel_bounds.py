"""The compiled decoder of JSON reads nothing behind the end of its values."""

import ctypes
import mmap
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from bucketlog.log_format.json_values.compiled_values import can_compile, parse_values
from bucketlog.log_reader.tables.compiled_columns import CompiledColumns
from bucketlog.log_reader.tables.conversions import TimeRules
from tests.servers.components import Components

FIELDS = pa.schema(
    [
        ("text", pa.string()),
        ("flag", pa.bool_()),
        ("number", pa.int64()),
        ("real", pa.float64()),
        ("price", pa.decimal128(9, 2)),
        ("born", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("local", pa.timestamp("us")),
        ("tags", pa.list_(pa.string())),
    ]
)
VALUES = (
    '{"text":"\\u00e9\\n€😀","flag":false,"number":-12,"real":1.5e-7}'.encode(),
    b'{"price":"-12.50","born":"2024-02-29","at":"2024-02-29T12:30:59.123456+01:00"}',
    b'{"at":"2024-02-29T12:30:59Z","local":"2024-02-29 12:30:59.5","price":12.5e1}',
    b'{"tags":["a",{"b":[1,{"c":null}]}],"other":{"d":true,"e":[[]]},"flag":true}',
    b'{"number":null,"tex":"t","texts":[-0.0,1e10,"\\ud800"]}',
)
ROOT = Path(__file__).parents[2]
PROGRAM = "from tests.unit.test_kernel_bounds import parse_at_the_end; parse_at_the_end()"


def cut_values() -> Iterator[bytes]:
    """Yield beginnings of all values, and values that end in the middle of a character."""
    for value in VALUES:
        for end in range(len(value)):
            yield value[:end]
            yield value[:end] + b"\xf0\x9f"
            yield value[:end] + b'"'


def parse_at_the_end() -> None:
    """Parse each value where its last byte is the last one that this process may read."""
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 2 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    assert protect(ctypes.c_void_p(start + page), page, 0) == 0
    compiled = CompiledColumns.of(FIELDS, TimeRules())
    assert compiled is not None
    assert can_compile()
    for value in cut_values():
        memory[page - len(value) : page] = value
        data = pa.foreign_buffer(start + page - len(value), len(value), memory)
        ends = pa.py_buffer(np.array([0, len(value)], np.int32))
        parsed = parse_values(
            pa.Array.from_buffers(pa.binary(), 1, [None, ends, data]), compiled.layout
        )
        assert parsed.doubts[0], value
    sys.stdout.write("done\n")


def test_no_byte_behind_a_value_is_read(components: Components) -> None:
    if not can_compile():
        components.missing("llvmlite", "pip install llvmlite")
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "done\n"), ran.stderr
