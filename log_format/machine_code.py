"""Kernels in LLVM's intermediate representation become machine code.

`scripts/kernels.py` writes the representation. LLVM compiles it at its first use, in a tenth of a
second or two.
"""

import importlib
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_OPTIMISED = 2


class MachineCode(NamedTuple):
    """`address` of a C function. It is valid only during the lifetime of `engine`, which owns the
    code."""

    address: int
    engine: Any


def machine_code(source: "Traversable", entry: str) -> MachineCode | None:
    """The function `entry` of `source`. Returns None without llvmlite."""
    try:
        llvm: Any = importlib.import_module("llvmlite.binding")
    except ImportError:
        return None
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(source.read_text("ascii"))
    machine = llvm.Target.from_default_triple().create_target_machine(opt=_OPTIMISED)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    module.verify()
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return MachineCode(engine.get_function_address(entry), engine)
