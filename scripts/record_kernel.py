"""Writes log_format/record_kernel.ll from record_kernel.py: `python scripts/record_kernel.py`.

numba compiles the functions for a generic processor. The script keeps only their code, adds a plain
C signature for `check`, and removes attributes that older versions of LLVM cannot read. A test
compares the file with the script's output (tests/architecture/test_kernel.py).
"""

import os
import re
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "log_format"
SOURCE, TARGET = FOLDER / "record_kernel.py", FOLDER / "record_kernel.ll"
FUNCTIONS = ("varint", "varlong", "is_utf8", "headers", "check")
"""Ordered so that each function calls only earlier ones."""
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
DEFINITION = re.compile(
    r"^define [^\n]*@_ZN\d+record_kernel[^\n]*{$.*?^}$", re.DOTALL | re.MULTILINE
)
MANGLED = re.compile(rf"@_ZN\d+record_kernel\d+({'|'.join(FUNCTIONS)})B\w*")
HEAD = "; Written by scripts/record_kernel.py from record_kernel.py with numba {version}."
ARGUMENTS = ", ".join(
    f"{kind} %a{at}" for at, kind in enumerate(["ptr", *["i64"] * 7, "ptr", "ptr"])
)
ENTRY = f"""
define i64 @check({ARGUMENTS}) {{
  %answer = alloca i64, align 8
  store i64 0, ptr %answer, align 8
  %status = call i32 @compiled_check(ptr %answer, ptr null, {ARGUMENTS})
  %fault = load i64, ptr %answer, align 8
  ret i64 %fault
}}
"""


def render() -> str:
    """The file's text. Call this in a fresh process, because numba reads its settings at import."""
    os.environ.update(NUMBA_SETTINGS)
    import numba

    whole = _compiled(numba)
    found = [
        re.sub(r"^define .*?(?=i\d+ @)", "define internal ", one)
        for one in DEFINITION.findall(whole)
    ]
    text = MANGLED.sub(r"@compiled_\1", "\n\n".join(found))
    text = METADATA.sub("", NEWER_ATTRIBUTES.sub("", text))
    used = set(re.findall(r"@([\w.]+)", text)) - set(re.findall(r"^define .*?@(\w+)", text, re.M))
    if strange := sorted(name for name in used if not name.startswith("llvm.")):
        raise SystemExit(f"{SOURCE.name} may call only its own functions, not {strange}")
    intrinsics = [
        METADATA.sub("", NEWER_ATTRIBUTES.sub("", line))
        for line in whole.splitlines()
        if line.startswith("declare") and any(f"@{name}(" in line for name in used)
    ]
    return "\n".join([HEAD.format(version=numba.__version__), *intrinsics, "", text, ENTRY])


def _compiled(numba: Any) -> str:
    namespace: dict[str, Any] = {"__name__": "record_kernel"}
    exec(compile(SOURCE.read_text(), "record_kernel", "exec"), namespace)
    jit = numba.njit(error_model="numpy")
    for name in FUNCTIONS:
        namespace[name] = jit(namespace[name])
    types = numba.types
    data, row = types.CPointer(types.uint8), types.CPointer(types.int64)
    check = namespace["check"]
    check.compile((data, *[types.int64] * 7, row, row))
    return str(check.inspect_llvm(check.signatures[0]))


def main() -> int:
    TARGET.write_text(render())
    return 0


if __name__ == "__main__":
    sys.exit(main())
