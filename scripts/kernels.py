"""Writes the kernels: record_kernel.ll, wire/plain_produce_kernel.ll and json_values/json_kernel.ll
in log_format/.

Run `python scripts/kernels.py`. The sources are the Python files of the same names.

numba compiles the functions for a generic processor. The script keeps only their code, adds a plain
C signature for the entry, and removes attributes that older versions of LLVM cannot read. A test
compares the files with the script's output (tests/architecture/test_kernel.py).
"""

import ast
import os
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]


class Kernel(NamedTuple):
    """`source` without its suffix is also the target's path. `parts` are files with functions that
    it imports. The last function is the entry, and each calls only earlier ones. `arguments` are
    the entry's: numba's types, `*` for a pointer."""

    source: Path
    parts: tuple[Path, ...]
    arguments: tuple[str, ...]

    @property
    def target(self) -> Path:
        return self.source.with_suffix(".ll")


KERNELS = (
    Kernel(
        ROOT / "log_format/record_kernel.py",
        (),
        ("uint8*", *["int64"] * 8, "int64*", "int64*"),
    ),
    Kernel(
        ROOT / "log_format/wire/plain_produce_kernel.py",
        (ROOT / "log_format/record_kernel.py",),
        ("uint8*", "int64", "int64*", "int64*"),
    ),
    Kernel(
        ROOT / "log_format/json_values/json_kernel.py",
        tuple(ROOT / f"log_format/json_values/json_{part}.py" for part in ("tokens", "times")),
        (
            *("uint8*", "int32*", "int64", "int64", "int64", "int64*", "uint8*"),
            *("int64*", "float64*", "uint8*", "int32*", "uint8*", "int64"),
            *("uint8*", "uint8*", "int64*", "int64*", "float64*", "int64*"),
        ),
    ),
)
NUMBA_SETTINGS = {
    "NUMBA_OPT": "2",
    "NUMBA_LOOP_VECTORIZE": "0",
    "NUMBA_SLP_VECTORIZE": "0",
    "NUMBA_CPU_NAME": "generic",
    "NUMBA_CPU_FEATURES": "",
}
NEWER_ATTRIBUTES = re.compile(
    r"(?<!!)\b(noalias|noundef|nonnull|nneg|disjoint|samesign|readonly|readnone|writeonly|writable"
    r"|captures\(none\)|nocapture|local_unnamed_addr|range\(i\d+ -?\d+, -?\d+\)|inbounds nuw"
    r"|dead_on_unwind|initializes\(\([^)]*\)\))\s+"
)
METADATA = re.compile(r",? ![\w.]+ !\d+| #\d+|\s*; preds = .*")
HEAD = "; Written by scripts/kernels.py from {source} with numba {version}."
ENTRY = """
define i64 @{name}({arguments}) {{
  %answer = alloca i64, align 8
  store i64 0, ptr %answer, align 8
  %status = call i32 @compiled_{name}(ptr %answer, ptr null, {arguments})
  %fault = load i64, ptr %answer, align 8
  ret i64 %fault
}}
"""


def render(kernel: Kernel) -> str:
    """The file's text. Call this in a fresh process, because numba reads its settings at import."""
    os.environ.update(NUMBA_SETTINGS)
    import numba

    module = kernel.source.stem
    names = [each.name for each in _parsed(kernel).body if isinstance(each, ast.FunctionDef)]
    whole = _compiled(numba, kernel, names)
    definition = re.compile(
        rf"^define [^\n]*@_ZN\d+{module}[^\n]*{{$.*?^}}$", re.DOTALL | re.MULTILINE
    )
    found = [
        re.sub(r"^define .*?(?=i\d+ @)", "define internal ", one)
        for one in definition.findall(whole)
    ]
    text = _renamed("\n\n".join(sorted(found)), module, names)
    text = METADATA.sub("", NEWER_ATTRIBUTES.sub("", text))
    used = set(re.findall(r"@([\w.]+)", text)) - set(
        re.findall(r"^define .*?@([\w.]+)", text, re.M)
    )
    if strange := sorted(name for name in used if not name.startswith("llvm.")):
        raise SystemExit(f"{kernel.source.name} may call only its own functions, not {strange}")
    intrinsics = [
        METADATA.sub("", NEWER_ATTRIBUTES.sub("", line))
        for line in whole.splitlines()
        if line.startswith("declare") and any(f"@{name}(" in line for name in used)
    ]
    arguments = ", ".join(
        f"{'ptr' if kind.endswith('*') else 'i64'} %a{at}"
        for at, kind in enumerate(kernel.arguments)
    )
    head = HEAD.format(source=kernel.source.name, version=numba.__version__)
    entry = ENTRY.format(name=names[-1], arguments=arguments)
    return "\n".join([head, *intrinsics, "", text, entry])


def _renamed(text: str, module: str, names: list[str]) -> str:
    """Give functions short names, and remove numbers that depend on the order of numba's work from
    labels. numba compiles a function again for arguments that are constants."""
    mangled = re.compile(rf"(?<=@)_ZN\d+{module}\d+({'|'.join(names)})B\d+v\d+(B\w*)")
    kinds: dict[str, set[str]] = {}
    for each in mangled.finditer(text):
        kinds.setdefault(each[1], set()).add(each[2])

    def short(each: re.Match[str]) -> str:
        number = sorted(kinds[each[1]]).index(each[2])
        return f"compiled_{each[1]}{number or ''}"

    return re.sub(rf"(_ZN\d+{module}\w+?)B\d+v\d+B", r"\1B", mangled.sub(short, text))


def _parsed(kernel: Kernel) -> ast.Module:
    """All files of the kernel as one module."""
    found = [
        each
        for path in (*kernel.parts, kernel.source)
        for each in ast.parse(path.read_text()).body
        if not (isinstance(each, ast.ImportFrom) and str(each.module).startswith("bucketlog."))
    ]
    return ast.Module(found, [])


def _compiled(numba: Any, kernel: Kernel, names: list[str]) -> str:
    namespace: dict[str, Any] = {"__name__": kernel.source.stem}
    exec(compile(_parsed(kernel), kernel.source.stem, "exec"), namespace)
    jit = numba.njit(error_model="numpy")
    for name in names:
        namespace[name] = jit(namespace[name])
    types = numba.types
    given = tuple(
        types.CPointer(getattr(types, kind[:-1])) if kind.endswith("*") else getattr(types, kind)
        for kind in kernel.arguments
    )
    entry = namespace[names[-1]]
    entry.compile(given)
    return str(entry.inspect_llvm(entry.signatures[0]))


def main() -> int:
    for kernel in KERNELS:
        kernel.target.write_text(render(kernel))
    return 0


if __name__ == "__main__":
    sys.exit(main())
