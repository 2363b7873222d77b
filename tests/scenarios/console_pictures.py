"""The pictures of the console in docs/console/: `python -m tests.scenarios.console_pictures`.

A fresh log is written by two brokers; all brokers have ended when the pictures are made.
"""

import io
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from PIL import Image
from playwright.sync_api import expect

from tests.models.repository import ROOT
from tests.rigs.console_log import write_log
from tests.scenarios.console_walk import PAGES
from tests.servers.browser import WatchedPage, chromium, console_process, found_chromium

FOLDER = ROOT / "docs/console"
WIDTH, HEIGHT, HEIGHT_MAX = 1200, 720, 1400
COLOURS = 128
DARK = ("overview", "record", "bucket")
"""Pages that also have a dark picture."""

Scheme = Literal["light", "dark"]


def take(folder: Path) -> list[Path]:
    """The pictures' files: NAME-SCHEME.png."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    with TemporaryDirectory(prefix="bucketlog-") as place:
        url = write_log(Path(place) / "shop")
        with (
            console_process(url, log_file=Path(place) / "console.log") as address,
            chromium(found_chromium()) as browser,
        ):
            schemes: tuple[Scheme, ...] = ("light", "dark")
            for scheme in schemes:
                context = browser.new_context(
                    viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme
                )
                watched = WatchedPage(context, address)
                for name, path in PAGES.items():
                    if scheme == "dark" and name not in DARK:
                        continue
                    page = watched.open(path)
                    if name == "verify":
                        page.get_by_role("button", name="Check the log").click()
                        expect(page.get_by_text("The log is sound")).to_be_visible()
                    tall = int(page.evaluate("document.documentElement.scrollHeight"))
                    page.set_viewport_size({"width": WIDTH, "height": min(tall, HEIGHT_MAX)})
                    made.append(folder / f"{name}-{scheme}.png")
                    made[-1].write_bytes(small(page.screenshot()))
                    page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
                assert watched.complaints == []
                context.close()
    return made


def small(picture: bytes) -> bytes:
    """With fewer colours: a third of the bytes."""
    out = io.BytesIO()
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
    return out.getvalue()


if __name__ == "__main__":
    take(FOLDER)
