"""What is wrong with a Terraform module, by its providers' schemas and the modules that it calls.

Functions from a module to complaints, so that planted faults show that they are found.
"""

from collections.abc import Callable, Iterator

from tests.infra.modules import IS_BLOCK, Body, Declared, Module, read_module, references
from tests.infra.provider_schema import ProviderSchema, Schema, UnknownTypeError

_META = frozenset({"count", "depends_on", "for_each", "lifecycle", "provider", "provisioner"})
_CALL_META = frozenset({"count", "depends_on", "for_each", "providers", "source", "version"})
_MARKS = frozenset({IS_BLOCK, "__comments__", "__inline_comments__"})
_PROVIDERS = ("aws_", "random_")
_WITHOUT_VALIDATION = frozenset({"${bool}", "bool"})


def misfits(module: Module, provider: ProviderSchema) -> Iterator[str]:
    """Arguments and blocks that the provider does not know, or misses."""
    for lookup, declared in (
        *((provider.resource, one) for one in module.resources),
        *((provider.data, one) for one in module.data),
    ):
        at = f"{declared.kind}.{declared.name}"
        schema = _schema(lookup, declared)
        if schema is None:
            yield f"{at}: the provider knows no {declared.kind}"
        else:
            yield from _body(at, declared.body, schema, schema.root)


def _schema(lookup: Callable[[str], Schema], declared: Declared) -> Schema | None:
    try:
        return lookup(declared.kind)
    except UnknownTypeError:
        return None


def _body(at: str, body: Body, schema: Schema, struct: str) -> Iterator[str]:
    known = schema.arguments(struct)
    dynamic = {
        key.strip('"') for block in body.get("dynamic", ()) for key in block if key not in _MARKS
    }
    for name, argument in known.items():
        if argument.required and name not in body and name not in dynamic:
            yield f"{at}: {name} is required"
    for name, value in body.items():
        if name in _MARKS or (struct == schema.root and name in _META):
            continue
        if name == "dynamic":
            yield from _dynamic(at, value, schema, struct)
            continue
        blocks = _blocks(value)
        found = known.get(name)
        if found is None:
            yield f"{at}: there is no {'block' if blocks else 'argument'} {name!r}"
        elif blocks and found.struct is None:
            yield f"{at}: {name} is an argument, no block"
        elif found.is_block and not blocks:
            yield f"{at}: {name} is a block, no argument"
        elif found.struct is not None:
            for inner in blocks:
                yield from _body(f"{at}.{name}", inner, schema, found.struct)


def _blocks(value: object) -> list[Body]:
    if not isinstance(value, list):
        return []
    return [inner for inner in value if isinstance(inner, dict) and inner.get(IS_BLOCK)]


def _dynamic(at: str, blocks: list[Body], schema: Schema, struct: str) -> Iterator[str]:
    for block in blocks:
        for quoted, told in block.items():
            if quoted in _MARKS:
                continue
            name = quoted.strip('"')
            argument = schema.arguments(struct).get(name)
            if argument is None or argument.struct is None:
                yield f"{at}: there is no block {name!r}"
                continue
            for content in told.get("content", ()):
                yield from _body(f"{at}.{name}", content, schema, argument.struct)


def miscalls(module: Module) -> Iterator[str]:
    """Arguments of calls that the called module does not have, or misses."""
    for name, body in module.calls.items():
        called = read_module(module.source_of(name))
        given = {key for key in body if key not in _CALL_META and key not in _MARKS}
        for unknown in sorted(given - set(called.variables)):
            yield f"module.{name}: {called.path.name} has no variable {unknown!r}"
        for variable, declared in called.variables.items():
            if "default" not in declared and variable not in given:
                yield f"module.{name}: {variable} is required"


def dangling(module: Module, provider: ProviderSchema) -> Iterator[str]:
    """References to what is not declared, or has no such attribute."""
    resources = {(one.kind, one.name) for one in module.resources}
    data = {(one.kind, one.name) for one in module.data}
    outputs = {name: read_module(module.source_of(name)).outputs for name in module.calls}
    for text in module.expressions:
        for parts in references(text):
            complaint = None
            match parts:
                case ("var", name, *_) if name not in module.variables:
                    complaint = "no such variable"
                case ("local", name, *_) if name not in module.local_names:
                    complaint = "no such local value"
                case ("module", name, *rest):
                    if name not in outputs or (rest and rest[0] not in outputs[name]):
                        complaint = "no such output"
                case ("data", kind, name, *rest):
                    complaint = _unknown(data, kind, name, rest, provider.data)
                case (kind, name, *rest) if kind.startswith(_PROVIDERS):
                    complaint = _unknown(resources, kind, name, rest, provider.resource)
            if complaint:
                yield f"{'.'.join(parts)}: {complaint}"


def _unknown(
    declared: set[tuple[str, str]],
    kind: str,
    name: str,
    rest: list[str],
    lookup: Callable[[str], Schema],
) -> str | None:
    if (kind, name) not in declared:
        return "not declared"
    if rest and rest[0] != "*" and rest[0] not in lookup(kind).exported:
        return f"{kind} has no attribute {rest[0]!r}"
    return None


def undocumented(module: Module, *, validated: bool) -> Iterator[str]:
    """Variables without description or type, and where `validated` without a validation unless
    they are true or false; outputs without description."""
    for name, body in module.variables.items():
        for needed in ("description", "type"):
            if needed not in body:
                yield f"variable {name} has no {needed}"
        if validated and "validation" not in body and body.get("type") not in _WITHOUT_VALIDATION:
            yield f"variable {name} has no validation"
    for name, body in module.outputs.items():
        if "description" not in body:
            yield f"output {name} has no description"
