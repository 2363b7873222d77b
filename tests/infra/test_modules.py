"""The modules under Terraform itself: validated, planned and applied against the providers' schemas
(`tests/infra/schema_server.py`), and planted faults that must be found.
"""

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.infra.modules import Module, read_module
from tests.infra.programs import EXAMPLES, MODULES
from tests.infra.provider_schema import schema_of
from tests.infra.workshop import FOLDERS, Workshop

pytestmark = pytest.mark.long

WITHOUT_VALIDATION = "bool"


def test_every_module_is_judged() -> None:
    assert {"broker", "metadata", "network", "observability", "policies", "spark", "storage"} == {
        path.name for path in FOLDERS.values() if path.parent == MODULES
    }
    assert {"localstack", "minimal", "production"} == {
        path.name for path in FOLDERS.values() if path.parent == EXAMPLES
    }
    assert all(list(path.glob("*.tftest.hcl")) for path in FOLDERS.values())


@pytest.mark.parametrize("name", FOLDERS)
def test_is_valid_and_passes_its_tests(name: str, workshop: Workshop) -> None:
    at = workshop.copy / name
    assert workshop.validated(at) == []
    code, said = workshop.run(at, "test")
    assert code == 0, said
    runs = re.findall(r"^run ", next(at.glob("*.tftest.hcl")).read_text(), re.MULTILINE)
    assert f"Success! {len(runs)} passed, 0 failed" in said


def test_grpc_is_not_loaded_into_the_process_of_the_tests(workshop: Workshop) -> None:
    assert "TF_REATTACH_PROVIDERS" in workshop.environment
    assert "grpc" not in sys.modules


def undocumented(module: Module, *, validated: bool) -> Iterator[str]:
    """Variables without description or type, and where `validated` without a validation unless
    they are true or false; outputs without description."""
    for name, body in module.variables.items():
        for needed in ("description", "type"):
            if needed not in body:
                yield f"variable {name} has no {needed}"
        if validated and "validation" not in body and body.get("type") != WITHOUT_VALIDATION:
            yield f"variable {name} has no validation"
    for name, body in module.outputs.items():
        if "description" not in body:
            yield f"output {name} has no description"


@pytest.mark.parametrize("name", FOLDERS)
def test_is_documented(name: str) -> None:
    validated = FOLDERS[name].parent == MODULES
    assert list(undocumented(read_module(FOLDERS[name]), validated=validated)) == []


class Plant(NamedTuple):
    """A fault: what `pattern` finds in the module `where` becomes `instead`; `said` is in the
    complaint."""

    where: str
    pattern: str
    instead: str
    said: str


INVALID = {
    "argument": Plant("storage", r"force_destroy +=", "destroy =", 'named "destroy"'),
    "missing argument": Plant(
        "storage", r"bucket = (\S+)\n  policy", r"policy", '"bucket" is required'
    ),
    "block": Plant("storage", r"versioning_configuration {", "state {", 'type "state"'),
    "missing argument of a block": Plant(
        "storage", r"\n    status = .*\n", "\n", '"status" is required'
    ),
    "block as argument": Plant(
        "storage", r"versioning_configuration {", "versioning_configuration = {", "Did you mean to"
    ),
    "type of resource": Plant(
        "spark", r'"aws_emrserverless_', '"aws_emr_serverless_', "does not support resource type"
    ),
    "kind of value": Plant(
        "storage", r"days_after_initiation = 1", 'days_after_initiation = "one"', "number"
    ),
    "attribute": Plant("broker", r"bootstrap\.arn_suffix", "bootstrap.suffix", '"suffix"'),
}


@pytest.mark.parametrize("case", INVALID)
def test_finds_a_planted_fault(case: str, tmp_path: Path, workshop: Workshop) -> None:
    found = workshop.validated(planted(tmp_path, INVALID[case]))
    assert any(INVALID[case].said in text for text in found), found


def test_finds_a_fault_that_only_a_plan_shows(tmp_path: Path, workshop: Workshop) -> None:
    at = planted(tmp_path, Plant("broker", r"local\.kafka_port \+ index", "local.kafka_port", ""))
    code, said = workshop.tested(at)
    assert code != 0
    assert "Two zones share a port" in said


UNDOCUMENTED = {
    "description": Plant("spark", r"description = .*", "", "has no description"),
    "type": Plant("spark", r"type        = number", "", "has no type"),
    "validation": Plant("spark", r"validation {", "lifecycle {", "has no validation"),
}


@pytest.mark.parametrize("case", UNDOCUMENTED)
def test_finds_what_is_not_documented(case: str, tmp_path: Path) -> None:
    module = read_module(planted(tmp_path, UNDOCUMENTED[case]))
    found = list(undocumented(module, validated=True))
    assert any(UNDOCUMENTED[case].said in text for text in found), found


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
