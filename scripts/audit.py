"""Reports known vulnerabilities of the pinned Python packages: `make audit`.

    python scripts/audit.py [--osv-url URL]

pip-audit asks an advisory service (OSV, or the service at URL) about every package of the lists
below. scripts/audit_allowed.toml accepts vulnerabilities, each with a reason and until a date. Exit
codes: 0, no others were found; 1, others were found, one line each; 2, the list of accepted
vulnerabilities is wrong, or the service failed.
"""

import argparse
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
ALLOWED = ROOT / "scripts" / "audit_allowed.toml"
LISTS = ("constraints.txt", "infra/container/requirements.txt", "scripts/supply_tools.txt")
FIELDS = {"id": str, "package": str, "reason": str, "expires": date}
REASON_LEAST = 20
"""In characters: a single word is not a reason."""
CLEAN, VULNERABLE, FAULTY = 0, 1, 2


class AllowedError(ValueError):
    """An entry of the list of accepted vulnerabilities is wrong."""


@dataclass(frozen=True, slots=True)
class Allowed:
    id: str
    package: str
    reason: str
    expires: date


@dataclass(frozen=True, slots=True)
class Finding:
    package: str
    version: str
    ids: tuple[str, ...]
    """The id of the advisory first, then its aliases."""
    fixed_in: tuple[str, ...]


def parse_allowed(text: str) -> list[Allowed]:
    """Raises `AllowedError`, which names the entry and the wrong field."""
    found = []
    for number, row in enumerate(tomllib.loads(text).get("allowed", []), 1):
        for name, kind in FIELDS.items():
            if type(row.get(name)) is not kind or not row[name]:
                raise AllowedError(f"entry {number}: {name} must be a {kind.__name__}")
        if unknown := sorted(set(row) - set(FIELDS)):
            raise AllowedError(f"entry {number}: unknown field {unknown[0]}")
        if len(row["reason"]) < REASON_LEAST:
            raise AllowedError(f"entry {number}: reason has fewer than {REASON_LEAST} characters")
        found.append(Allowed(**row))
    return found


def parse_report(report: dict[str, Any]) -> Iterator[Finding]:
    """The findings in pip-audit's JSON."""
    for package in report["dependencies"]:
        for found in package.get("vulns", ()):
            yield Finding(
                package["name"],
                package["version"],
                (found["id"], *found["aliases"]),
                tuple(found["fix_versions"]),
            )


def complaints(
    findings: Iterable[Finding], allowed: Sequence[Allowed], today: date
) -> Iterator[str]:
    """A line for each finding that is not accepted today, and for each unused entry."""
    unused = set(allowed)
    for finding in findings:
        entries = [
            entry
            for entry in allowed
            if entry.package == finding.package and entry.id in finding.ids
        ]
        unused.difference_update(entries)
        if any(today <= entry.expires for entry in entries):
            continue
        fixed = f"fixed in {', '.join(finding.fixed_in)}" if finding.fixed_in else "not fixed yet"
        past = "".join(f"; allowed until {entry.expires}: {entry.reason}" for entry in entries)
        yield f"{finding.package} {finding.version}: {finding.ids[0]}, {fixed}{past}"
    for entry in sorted(unused, key=lambda entry: (entry.package, entry.id)):
        yield f"{entry.package}: {entry.id} is no longer found, remove it from {ALLOWED.name}"


def audit(program: str, lists: Sequence[Path], osv_url: str | None) -> list[Finding]:
    """Run pip-audit on each list. Raises `subprocess.CalledProcessError` if it fails."""
    found: dict[tuple[str, str, str], Finding] = {}
    for path in lists:
        command = [program, "--disable-pip", "--require-hashes", "--requirement", str(path)]
        command += [
            "--format",
            "json",
            "--progress-spinner",
            "off",
            "--vulnerability-service",
            "osv",
        ]
        command += ["--osv-url", osv_url] if osv_url else []
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1) or not done.stdout:
            sys.stderr.write(done.stderr)
            done.check_returncode()
            raise subprocess.CalledProcessError(done.returncode, command)
        for finding in parse_report(json.loads(done.stdout)):
            found[finding.package, finding.version, finding.ids[0]] = finding
    return list(found.values())


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="audit", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--osv-url", help="URL of another advisory service with OSV's API")
    options = parser.parse_args(arguments)
    try:
        allowed = parse_allowed(ALLOWED.read_text())
        where = [str(ROOT / "scripts" / "install.sh"), "--where", "supply-tools"]
        python = subprocess.run(where, stdout=subprocess.PIPE, text=True, check=True).stdout
        program = str(Path(python.strip()).with_name("pip-audit"))
        findings = audit(program, [ROOT / name for name in LISTS], options.osv_url)
    except AllowedError as error:
        sys.stderr.write(f"audit: {ALLOWED.name}: {error}\n")
        return FAULTY
    except subprocess.CalledProcessError as error:
        sys.stderr.write(f"audit: pip-audit or its advisory service failed: {error}\n")
        return FAULTY
    lines = list(complaints(findings, allowed, datetime.now(UTC).date()))
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return VULNERABLE if lines else CLEAN


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
