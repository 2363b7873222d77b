"""Machine code of kernels, which are files of LLVM's intermediate representation.

`scripts/kernels.py` writes the files. LLVM compiles a kernel at its first use. This takes at most
about 0.2 seconds.
"""

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_OPTIMISED, _QUICK = 2, 0
"""Optimisation levels of code generation. The files are already optimised, apart from the
processor's code."""


class MachineCode(NamedTuple):
    """The address of a C function. The address is valid only during the lifetime of `engine`, which
    owns the code."""

    address: int
    engine: Any


def is_compiled() -> bool:
    """Return whether kernels run as machine code: True if llvmlite is installed."""
    return importlib.util.find_spec("llvmlite") is not None


def machine_code(
    source: "Traversable", entry: str, *, compiles_quickly: bool = False
) -> MachineCode | None:
    """Compile the function `entry` of `source`. Returns None if llvmlite is not installed. With
    `compiles_quickly`, LLVM takes a fifth of the time, but the code is slower in long loops."""
    try:
        llvm: Any = importlib.import_module("llvmlite.binding")
    except ImportError:
        return None
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(source.read_text("ascii"))
    machine = llvm.Target.from_default_triple().create_target_machine(
        opt=_QUICK if compiles_quickly else _OPTIMISED
    )
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    module.verify()
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return MachineCode(engine.get_function_address(entry), engine)
