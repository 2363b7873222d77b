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
    r"\{@link \S+?/docs(?:/(?:resources|data-sources)/\w+)?#(\w+) ",
    re.MULTILINE | re.DOTALL,
)
_MAIN = re.compile(
    r"^class \w+\(\n    _cdktf_\w+\.Terraform(?:Resource|DataSource),\n"
    r"(?P<body>.*?)(?=^@|^class |\Z)",
    re.MULTILINE | re.DOTALL,
)
_PROPERTY = re.compile(
    r"@builtins\.property\n    @jsii\.member\(.*?\)\n    def (\w+)\(self\) -> (.*):\n"
)
_STRUCT_TYPE = re.compile(r'typing\.Union\[[\'"]?([A-Z]\w+)[\'"]?, typing\.Dict\[builtins\.str')
_MANY = re.compile(r"typing\.(Sequence|List|Mapping)\[(.*)\]|(_cdktf_\w+\.StringMap)$")
_SINGLE = {"str": "string", "Number": "number", "bool": "bool", "IResolvable": "bool"}
_VERSION = re.compile(r"provider version (\S+)")
_META = "TerraformMetaArguments"


Type = str | list[str]
"""As Terraform writes types in JSON."""


class UnknownTypeError(LookupError):
    """The provider knows no such resource or data source."""


class Argument(NamedTuple):
    """`struct` names the class of what is inside: of blocks, and of attributes that are objects;
    else there is a `type`. A block that is not `many` may stand there once."""

    required: bool
    is_block: bool
    many: bool
    struct: str | None
    type: Type


class Schema(NamedTuple):
    """Of a resource, a data source or a provider. `structs` by class; `root` is one of them.
    `computed` are attributes that the provider alone sets."""

    root: str
    structs: Mapping[str, Mapping[str, Argument]]
    computed: Mapping[str, Type]

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

    def of_provider(self, provider: str) -> Schema:
        """Of the provider's own settings."""
        return provider_of(self._text(provider, "provider"))

    def _version(self, provider: str) -> str:
        wheel = self._wheels[provider]
        (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        found = _VERSION.search(wheel.read(name).decode())
        return found[1] if found else "?"

    def _read(self, kind: str, prefix: str) -> Schema:
        provider, _, name = kind.partition("_")
        try:
            return schema_of(self._text(provider, f"data_{kind}" if prefix else name))
        except KeyError:
            what = f"{prefix.replace('_', ' ')}{kind}"
            raise UnknownTypeError(f"no provider here knows {what}") from None

    def _text(self, provider: str, folder: str) -> str:
        path = f"cdktf_cdktf_provider_{provider}/{folder}/__init__.py"
        return self._wheels[provider].read(path).decode()


def schema_of(text: str) -> Schema:
    """From the text of a module of the bindings."""
    structs, roots = _structs(text)
    main = _MAIN.search(text)
    if len(roots) != 1 or main is None:
        raise ValueError(f"bindings of an unknown form: {len(roots)} roots")
    (root,) = roots
    computed = {
        name: _type_of(annotation)
        for name, annotation in _PROPERTY.findall(main["body"])
        if name not in structs[root] and not name.endswith("_input")
    }
    return Schema(root, structs, computed)


def provider_of(text: str) -> Schema:
    """From the text of the bindings of a provider's settings."""
    structs, _ = _structs(text)
    (root,) = (name for name in structs if name.endswith("ProviderConfig"))
    return Schema(root, structs, {})


def _structs(text: str) -> tuple[dict[str, Mapping[str, Argument]], list[str]]:
    """All of them by name, and which are roots."""
    structs: dict[str, Mapping[str, Argument]] = {}
    roots = []
    for found in _STRUCT.finditer(text):
        structs[found["name"]] = dict(_arguments(found["signature"], found["text"] or ""))
        if _META in (found["bases"] or ""):
            roots.append(found["name"])
    for struct in structs.values():
        for argument in struct.values():
            if argument.struct is not None and argument.struct not in structs:
                raise ValueError(f"bindings of an unknown form: {argument.struct} is nowhere")
    return structs, roots


def _arguments(signature: str, text: str) -> Iterator[tuple[str, Argument]]:
    told = {name: (terraform, said) for name, said, terraform in _TOLD.findall(text)}
    (function,) = ast.parse(f"def f({signature}): ...").body
    assert isinstance(function, ast.FunctionDef)
    for argument, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
        if argument.arg not in told or argument.annotation is None:
            continue  # count, lifecycle and the like: Terraform's own
        terraform, said = told[argument.arg]
        annotation = ast.unparse(argument.annotation)
        struct = _STRUCT_TYPE.search(annotation)
        yield (
            terraform,
            Argument(
                required=default is None,
                is_block=said.startswith(f"{terraform} block."),
                many="typing.Sequence[" in annotation,
                struct=struct[1] if struct else None,
                type="dynamic" if struct else _type_of(annotation),
            ),
        )


def _type_of(annotation: str) -> Type:
    many = _MANY.search(annotation)
    if many is None:
        found = re.search(r"\.(str|Number|bool|IResolvable)\b", annotation)
        return _SINGLE[found[1]] if found and "_" not in found[0] else "dynamic"
    if many[3]:
        return ["map", "string"]
    inner = many[2].partition(", ")[2] if many[1] == "Mapping" else many[2]
    single = _type_of(inner)
    if not isinstance(single, str):
        return "dynamic"
    return ["map" if many[1] == "Mapping" else "list", single]
