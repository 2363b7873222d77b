"""The modules against what the providers accept, and the judges against planted faults."""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.components import Components
from tests.infra.judgement import dangling, miscalls, misfits, undocumented
from tests.infra.modules import Module, read_module, references
from tests.infra.programs import EXAMPLES, INFRA, MODULES, installed, module_folders
from tests.infra.provider_schema import ProviderSchema, schema_of

Judge = Callable[[Module, ProviderSchema], Iterator[str]]


@pytest.fixture(scope="module")
def provider(components: Components) -> ProviderSchema:
    schema = ProviderSchema(installed("provider-schema", components))
    components.took_part("schema of Terraform's providers", schema.versions)
    return schema


def names(module: Module, provider: ProviderSchema) -> Iterator[str]:
    yield from misfits(module, provider)
    yield from dangling(module, provider)


def calls(module: Module, _: ProviderSchema) -> Iterator[str]:
    yield from miscalls(module)


def documentation(module: Module, _: ProviderSchema) -> Iterator[str]:
    yield from undocumented(module, validated=module.path.parent != EXAMPLES)


def test_every_module_is_judged() -> None:
    modules = {path.name for path in module_folders()}
    assert {"broker", "metadata", "network", "observability", "policies", "spark"} <= modules
    assert {"localstack", "minimal", "production", "storage"} <= modules
    declared = sum(len(read_module(path).resources) for path in module_folders())
    referred = sum(
        1
        for path in module_folders()
        for text in read_module(path).expressions
        for _ in references(text)
    )
    assert declared > 60
    assert referred > 500


JUDGES: tuple[Judge, ...] = (names, calls, documentation)


@pytest.mark.parametrize("judge", JUDGES, ids=lambda judge: judge.__name__)
def test_holds_everywhere(judge: Judge, provider: ProviderSchema) -> None:
    complaints = [
        f"{path.relative_to(INFRA)}: {text}"
        for path in module_folders()
        for text in judge(read_module(path), provider)
    ]
    assert not complaints, "\n".join(complaints)


class Plant(NamedTuple):
    """A fault: what `pattern` finds in the module `where` becomes `instead`; `said` is in the
    complaint."""

    where: str
    pattern: str
    instead: str
    said: str


PLANTED = {
    "argument": Plant("storage", r"force_destroy +=", "destroy =", "no argument 'destroy'"),
    "missing argument": Plant(
        "storage", r"bucket = (\S+)\n  policy", r"policy", "log: bucket is required"
    ),
    "block": Plant("storage", r"versioning_configuration {", "state {", "no block 'state'"),
    "argument of a block": Plant(
        "storage", r"noncurrent_days +=", "days =", "version_expiration: there is no argument"
    ),
    "missing argument of a block": Plant(
        "storage", r"\n    status = .*\n", "\n", "configuration.log.rule: status is required"
    ),
    "block as argument": Plant(
        "storage", r"versioning_configuration {", "versioning_configuration = {", "is a block"
    ),
    "argument as block": Plant(
        "broker", r"requires_compatibilities += .*", "requires_compatibilities {}", "no block"
    ),
    "type": Plant("spark", r'"aws_emrserverless_', '"aws_emr_serverless_', "the provider knows no"),
    "attribute": Plant("broker", r"bootstrap\.arn_suffix", "bootstrap.suffix", "'suffix'"),
    "undeclared resource": Plant("broker", r"role\.broker\.id", "role.other.id", "not declared"),
    "undeclared variable": Plant("network", r"= var\.cidr\n", "= var.range\n", "no such variable"),
    "undeclared local": Plant("metadata", r"= local\.port\n", "= local.door\n", "no such local"),
    "output of a module": Plant(
        "storage", r"policies\.reader\n", "policies.writer\n", "no such output"
    ),
    "argument of a call": Plant("storage", r"shard +=", "part =", "no variable 'part'"),
    "missing argument of a call": Plant(
        "storage", r"  deleting_role_arns += .*\n", "", "deleting_role_arns is required"
    ),
    "description": Plant("spark", r"description = .*", "", "has no description"),
    "type of a variable": Plant("spark", r"type        = number", "", "has no type"),
    "validation": Plant("spark", r"validation {", "lifecycle {", "has no validation"),
}


@pytest.mark.parametrize("case", PLANTED)
def test_finds_a_planted_fault(case: str, tmp_path: Path, provider: ProviderSchema) -> None:
    plant = PLANTED[case]
    module = read_module(planted(tmp_path, plant))
    found = [text for judge in JUDGES for text in judge(module, provider)]
    assert any(plant.said in text for text in found), found


def planted(tmp_path: Path, plant: Plant) -> Path:
    """A copy of the module with the fault, beside the module that others call."""
    shutil.copytree(MODULES / "policies", tmp_path / "policies")
    folder = shutil.copytree(MODULES / plant.where, tmp_path / plant.where)
    changed = 0
    for file in sorted(folder.glob("*.tf")):
        text, count = re.subn(plant.pattern, plant.instead, file.read_text())
        file.write_text(text)
        changed += count
    assert changed, f"{plant.pattern!r} is not in {plant.where}"
    return folder


def test_bindings_of_another_form_are_an_error() -> None:
    with pytest.raises(ValueError, match="unknown form"):
        schema_of("class Something:\n    pass\n")
