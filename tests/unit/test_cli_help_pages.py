"""Pages of help in 80 columns: no description is cut, and no page is wider."""

import re
from typing import Any

import pytest

from bucketlog.cli.main import main, whole_command

COMMAND: Any = whole_command()
GROUPS = ["", *(name for name, one in COMMAND.commands.items() if hasattr(one, "commands"))]


@pytest.mark.parametrize("group", GROUPS)
def test_no_description_is_cut(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*group.split(), "--help"]) == 0
    page = capsys.readouterr().out
    assert not re.search(r"\.\.\.$", page.partition("Commands:")[2], re.MULTILINE)
    assert max(map(len, page.splitlines())) <= 80
    assert "\x1b" not in page
