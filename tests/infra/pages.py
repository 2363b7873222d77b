"""The tables of variables and outputs in the modules' pages: `python -m tests.infra.pages` writes
them, a test compares.
"""

import re
from pathlib import Path

from tests.infra.modules import Body, read_module, unquoted
from tests.infra.programs import MODULES

BEGIN = "<!-- tables: python -m tests.infra.pages -->"


def with_tables(page: str, folder: Path) -> str:
    """The page as it should be."""
    module = read_module(folder)
    prose = page.partition(BEGIN)[0].rstrip()
    rows = ["", BEGIN, "", "| variable | default | meaning |", "|---|---|---|"]
    rows += [
        f"| `{name}` | {_default(body)} | {_text(body)} |"
        for name, body in module.variables.items()
    ]
    rows += ["", "| output | meaning |", "|---|---|"]
    rows += [f"| `{name}` | {_text(body)} |" for name, body in module.outputs.items()]
    return "\n".join([prose, *rows, ""])


def _text(body: Body) -> str:
    return unquoted(body["description"]).replace('\\"', '"').replace("|", "\\|")


def _default(body: Body) -> str:
    if "default" not in body:
        return "required"
    value = body["default"]
    if value is None:
        return "`null`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, list):
        return f"`[{', '.join(map(str, value))}]`"
    text = re.sub(r"^\$\{(.*)\}$", r"\1", str(value))
    return f"`{text or chr(34) * 2}`"


def pages() -> list[Path]:
    return [folder / "README.md" for folder in sorted(MODULES.iterdir()) if folder.is_dir()]


if __name__ == "__main__":
    for path in pages():
        path.write_text(with_tables(path.read_text(), path.parent))
