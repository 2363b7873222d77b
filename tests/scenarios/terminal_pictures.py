"""Pictures of a terminal: the bytes that commands wrote, as SVG in a light and a dark theme."""

import io
import re
from collections.abc import Sequence
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI, TerminalTheme
from rich.text import Text

from tests.scenarios.terminal_session import COLUMNS, Shown

FONT = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
_FORMAT = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL).replace(
    "Fira Code, monospace", FONT
)
"""Rich's, without the fonts of another host."""
LIGHT = TerminalTheme(
    (255, 255, 255),
    (31, 35, 40),
    [
        *((36, 41, 47), (164, 14, 38), (17, 99, 41), (122, 79, 1)),
        *((9, 105, 218), (130, 80, 223), (0, 96, 117), (87, 96, 106)),
    ],
)
THEMES = {"light": LIGHT, "dark": DIMMED_MONOKAI}


def picture(session: Sequence[Shown], title: str, theme: TerminalTheme) -> str:
    """The commands of a session with what they showed, as one SVG."""
    console = Console(
        record=True,
        width=COLUMNS,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
    )
    for number, each in enumerate(session):
        if number:
            console.print()
        _print(console, Text(f"$ bucketlog {each.command}", style="bold"))
        for text in (each.out, each.error):
            if text:
                _print(console, Text.from_ansi(text.removesuffix("\n")))
    return console.export_svg(
        title=title, theme=theme, code_format=_FORMAT, unique_id=re.sub(r"\W", "-", title)
    )


def _print(console: Console, text: Text) -> None:
    """Folded after each 80 characters, as terminals do."""
    for line in text.split("\n", allow_blank=True):
        for part in line.divide(range(COLUMNS, len(line), COLUMNS)) or [line]:
            console.print(part, overflow="ignore", no_wrap=True, crop=False)


def write_pictures(folder: Path, name: str, session: Sequence[Shown]) -> int:
    """Write the pictures of a session in each theme. Returns their bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    size = 0
    for theme_name, theme in THEMES.items():
        text = picture(session, f"bucketlog {name}", theme)
        text = "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
        (folder / f"{name}-{theme_name}.svg").write_text(text)
        size += len(text)
    return size
