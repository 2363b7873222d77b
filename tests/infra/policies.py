"""The policies of the bucket as Terraform evaluates them: the module `policies` has no provider, so
that this needs neither AWS nor a network.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.infra.programs import MODULES, run

BROKER = "arn:aws:iam::123456789012:role/bucketlog-broker"
LOCAL_BROKER = "arn:aws:iam::000000000000:role/bucketlog-broker"
PLACEHOLDER = "the-bucket-of-a-store-here"
Policy = dict[str, Any]


class Policies(NamedTuple):
    bucket: Policy
    broker: Policy
    reader: Policy
    spark: Policy


class EvaluationError(Exception):
    """What Terraform says."""


def evaluated(
    terraform: Path, folder: Path, given: Mapping[str, object], module: Path = MODULES / "policies"
) -> Policies:
    """With variables as given; `folder` is empty. Raises `EvaluationError`."""
    at = shutil.copytree(module, folder / "policies")
    values = {"deleting_role_arns": [BROKER], **given}
    (at / "given.auto.tfvars.json").write_text(json.dumps(values))
    for step in (["init"], ["apply", "-auto-approve"]):
        done = run([terraform, *step, "-no-color", "-input=false"], at)
        if done.returncode:
            raise EvaluationError(done.stdout + done.stderr)
    told = json.loads(run([terraform, "output", "-json"], at).stdout)
    return Policies(**{name: json.loads(told[name]["value"]) for name in Policies._fields})


def for_stores_here(terraform: Path, folder: Path) -> dict[str, str]:
    """What `localstack/policies` holds, by file name: without TLS, for any bucket's name."""
    found = evaluated(
        terraform,
        folder,
        {
            "bucket_name": PLACEHOLDER,
            "require_tls": False,
            "deleting_role_arns": [LOCAL_BROKER],
        },
    )
    return {
        f"{name}.json": json.dumps(getattr(found, name), indent=2).replace(PLACEHOLDER, "${bucket}")
        + "\n"
        for name in ("bucket", "broker", "reader")
    }
