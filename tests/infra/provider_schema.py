"""What Terraform's providers accept, read from the wheels that carry their generated bindings.

`cdktf-cdktf-provider-aws` holds a Python class for each resource and data source, generated from
the schema that the provider itself publishes. Nothing of it is imported (that would need node):
its text is read. Invariant: what is not found there in the known form is an error, never a schema
that accepts everything.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

_STRUCT = re.compile(
    r"^class (?P<name>\w+)(?:\((?P<bases>[^)]*)\))?:\n"
    r"    def __init__\(\s*(?P<signature>self\b.*?)\) -> None:\n"
    r"(?:        r?'''(?P<text>.*?)''')?",
    re.MULTILINE | re.DOTALL,
)
_TOLD = re.compile(
    r"^        :param (\w+): (?P<said>(?:(?!\n        :param ).)*?)"
    r"\{@link \S+?docs/(?:resources|data-sources)/\w+#(\w+) ",
    re.MULTILINE | re.DOTALL,
)
_MAIN = re.compile(
    r"^class \w+\(\n    _cdktf_\w+\.Terraform(?:Resource|DataSource),\n"
    r"(?P<body>.*?)(?=^@|^class |\Z)",
    re.MULTILINE | re.DOTALL,
)
_PROPERTY = re.compile(r"@builtins\.property\n    @jsii\.member\(.*?\)\n    def (\w+)\(self\)")
_STRUCT_TYPE = re.compile(r'typing\.Union\[[\'"]?([A-Z]\w+)[\'"]?, typing\.Dict\[builtins\.str')
_VERSION = re.compile(r"provider version (\S+)")
_META = "TerraformMetaArguments"


class UnknownTypeError(LookupError):
    """The provider knows no such resource or data source."""


class Argument(NamedTuple):
    """`struct` names the class of what is inside: of blocks, and of attributes that are objects."""

    required: bool
    is_block: bool
    struct: str | None


class Schema(NamedTuple):
    """Of a resource or data source. `structs` by class; `root` is one of them. `exported` are the
    names that may be referred to."""

    root: str
    structs: Mapping[str, Mapping[str, Argument]]
    exported: frozenset[str]

    def arguments(self, struct: str) -> Mapping[str, Argument]:
        return self.structs[struct]


class ProviderSchema:
    """`wheels` is a folder with the bindings of each provider."""

    def __init__(self, wheels: Path) -> None:
        self._wheels = {
            re.sub(r"cdktf_cdktf_provider_(\w+?)-.*", r"\1", path.name): ZipFile(path)
            for path in sorted(wheels.glob("cdktf_cdktf_provider_*.whl"))
        }
        self._of = cache(self._read)

    @property
    def versions(self) -> str:
        """Of the providers, for people."""
        return ", ".join(f"{name} {self._version(name)}" for name in sorted(self._wheels))

    def resource(self, kind: str) -> Schema:
        """`kind` as in Terraform, such as aws_s3_bucket. Raises `UnknownTypeError`."""
        return self._of(kind, "")

    def data(self, kind: str) -> Schema:
        return self._of(kind, "data_")

    def _version(self, provider: str) -> str:
        wheel = self._wheels[provider]
        (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        found = _VERSION.search(wheel.read(name).decode())
        return found[1] if found else "?"

    def _read(self, kind: str, prefix: str) -> Schema:
        provider, _, name = kind.partition("_")
        folder = f"data_{kind}" if prefix else name
        wheel = self._wheels.get(provider)
        path = f"cdktf_cdktf_provider_{provider}/{folder}/__init__.py"
        if wheel is None or path not in wheel.namelist():
            raise UnknownTypeError(f"no provider here knows {prefix.replace('_', ' ')}{kind}")
        return schema_of(wheel.read(path).decode())


def schema_of(text: str) -> Schema:
    """From the text of a module of the bindings."""
    structs: dict[str, Mapping[str, Argument]] = {}
    roots = []
    for found in _STRUCT.finditer(text):
        structs[found["name"]] = dict(_arguments(found["signature"], found["text"] or ""))
        if _META in (found["bases"] or ""):
            roots.append(found["name"])
    main = _MAIN.search(text)
    if len(roots) != 1 or main is None:
        raise ValueError(f"bindings of an unknown form: {len(roots)} roots")
    for struct in structs.values():
        for argument in struct.values():
            if argument.struct is not None and argument.struct not in structs:
                raise ValueError(f"bindings of an unknown form: {argument.struct} is nowhere")
    (root,) = roots
    exported = frozenset(_PROPERTY.findall(main["body"])) | frozenset(structs[root])
    return Schema(root, structs, exported)


def _arguments(signature: str, text: str) -> Iterator[tuple[str, Argument]]:
    told = {name: (terraform, said) for name, said, terraform in _TOLD.findall(text)}
    (function,) = ast.parse(f"def f({signature}): ...").body
    assert isinstance(function, ast.FunctionDef)
    for argument, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
        if argument.arg not in told or argument.annotation is None:
            continue  # count, lifecycle and the like: Terraform's own
        terraform, said = told[argument.arg]
        struct = _STRUCT_TYPE.search(ast.unparse(argument.annotation))
        is_block = said.startswith(f"{terraform} block.")
        yield terraform, Argument(default is None, is_block, struct[1] if struct else None)
