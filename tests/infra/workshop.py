"""Terraform at work on a copy of the modules, with the providers' schemas and no provider."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.infra.programs import module_folders, run

FOLDERS = {f"{path.parent.name}/{path.name}": path for path in module_folders()}


class Workshop(NamedTuple):
    """Terraform, with the providers' schemas, and a copy of all modules to work in."""

    terraform: Path
    environment: dict[str, str]
    copy: Path

    def run(self, at: Path, *step: str) -> tuple[int, str]:
        """Exit code, and what it says."""
        done = run([self.terraform, *step, "-no-color"], at, self.environment)
        return done.returncode, done.stdout + done.stderr

    def validated(self, at: Path) -> list[str]:
        """What is wrong."""
        code, said = self.run(at, "init", "-input=false")
        assert code == 0, said
        code, said = self.run(at, "validate", "-json")
        found = json.loads(said)["diagnostics"]
        assert bool(code) == any(one["severity"] == "error" for one in found)
        return [f"{one['summary']}: {one['detail']}" for one in found]

    def plans(self, at: Path) -> Iterator[dict[str, Any]]:
        """What the module's tests plan: of each resource its address, type, and change."""
        code, said = self.run(at, "init", "-input=false")
        assert code == 0, said
        for line in self.run(at, "test", "-json", "-verbose")[1].splitlines():
            told = json.loads(line)
            if told.get("type") == "test_plan":
                yield from told["test_plan"].get("resource_changes", ())

    def tested(self, at: Path) -> tuple[int, str]:
        code, said = self.run(at, "init", "-input=false")
        assert code == 0, said
        return self.run(at, "test")
