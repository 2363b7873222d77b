"""The audit's list of accepted vulnerabilities, and what counts against it."""

from datetime import date

import pytest

from scripts.audit import (
    ALLOWED,
    Allowed,
    AllowedError,
    Finding,
    complaints,
    parse_allowed,
    parse_report,
)

TODAY = date(2026, 11, 23)
REASON = "only the server part is affected, which is not used"
ENTRY = f"""
[[allowed]]
id = "GHSA-1111-2222-3333"
package = "wheelbarrow"
reason = "{REASON}"
expires = 2026-11-23
"""
FOUND = Finding("wheelbarrow", "1.0", ("PYSEC-2026-1", "GHSA-1111-2222-3333"), ("1.1", "2.0"))


def test_the_list_is_sound() -> None:
    parse_allowed(ALLOWED.read_text())


def test_an_entry_has_a_reason_and_a_date() -> None:
    (entry,) = parse_allowed(ENTRY)
    assert entry == Allowed("GHSA-1111-2222-3333", "wheelbarrow", REASON, TODAY)
    for line in ENTRY.strip().splitlines()[1:]:
        name = line.partition(" ")[0]
        with pytest.raises(AllowedError, match=f"entry 1: {name} must be"):
            parse_allowed(ENTRY.replace(line, ""))
    for wrong, right, complaint in (
        ("2026-11-23", '"never"', "expires must be a date"),
        ("2026-11-23", "2026-11-23T00:00:00", "expires must be a date"),
        (REASON, "not needed", "fewer than 20"),
        ("reason", "because", "reason must be"),
        ("[[allowed]]", "[[allowed]]\nowner = 'x'", "unknown field owner"),
    ):
        with pytest.raises(AllowedError, match=complaint):
            parse_allowed(ENTRY.replace(wrong, right))


def test_entries_accept_findings_until_their_date() -> None:
    (entry,) = parse_allowed(ENTRY)
    assert list(complaints([FOUND], [entry], TODAY)) == []
    assert list(complaints([FOUND], [], TODAY)) == [
        "wheelbarrow 1.0: PYSEC-2026-1, fixed in 1.1, 2.0"
    ]
    (late,) = complaints([FOUND], [entry], date(2026, 11, 24))
    assert late.endswith(f"; allowed until 2026-11-23: {REASON}")
    other = Finding("another", "1.0", FOUND.ids, ())
    assert list(complaints([other], [entry], TODAY)) == [
        "another 1.0: PYSEC-2026-1, not fixed yet",
        "wheelbarrow: GHSA-1111-2222-3333 is no longer found, remove it from audit_allowed.toml",
    ]


def test_a_report_of_pip_audit() -> None:
    vulnerability = {"id": FOUND.ids[0], "aliases": [FOUND.ids[1]], "fix_versions": ["1.1", "2.0"]}
    report = {
        "dependencies": [
            {"name": "wheelbarrow", "version": "1.0", "vulns": [vulnerability]},
            {"name": "sound", "version": "2.0", "vulns": []},
            {"name": "local", "skip_reason": "no service knows it"},
        ],
        "fixes": [],
    }
    assert list(parse_report(report)) == [FOUND]
