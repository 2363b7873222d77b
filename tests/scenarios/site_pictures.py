"""Pictures of the documentation site's main pages: `python -m tests.scenarios.site_pictures`.

They are in build/site-pictures: light, dark, and as on a phone. docs/pictures/site has three.
"""

import tempfile
from pathlib import Path
from typing import Literal, NamedTuple

from playwright.sync_api import Browser

from tests.models.repository import ROOT
from tests.scenarios.built_site import build_site
from tests.scenarios.console_pictures import small
from tests.servers.browser import WatchedPage, chromium, found_chromium
from tests.servers.static_site import served

FOLDER = ROOT / "build/site-pictures"
PAGES = {
    "home": "",
    "tutorial": "tutorial/",
    "guide": "guides/consumer-service/",
    "api": "reference/api/producers/",
    "commands": "reference/commands/",
    "settings": "configuration/",
    "comparison": "comparison/",
    "architecture": "project/ARCHITECTURE/",
    "segment": "format/segment/",
}
HEIGHT = 900


class View(NamedTuple):
    name: str
    scheme: Literal["light", "dark"]
    width: int


VIEWS = (View("light", "light", 1280), View("dark", "dark", 1280), View("narrow", "light", 390))


def take(browser: Browser, address: str, folder: Path) -> list[Path]:
    """NAME-VIEW.png for each page. Raises `AssertionError` if a page is wider than its window, or
    complains."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for view in VIEWS:
        context = browser.new_context(
            viewport={"width": view.width, "height": HEIGHT}, color_scheme=view.scheme
        )
        watched = WatchedPage(context, address)
        for name, path in PAGES.items():
            page = watched.open(path)
            scheme = page.evaluate("document.body.dataset.mdColorScheme")
            assert scheme == {"light": "default", "dark": "slate"}[view.scheme], name
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= view.width, f"{name} is {wide} wide in a window of {view.width}"
            made.append(folder / f"{name}-{view.name}.png")
            made[-1].write_bytes(small(page.screenshot()))
        assert watched.complaints == []
        context.close()
    return made


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="bucketlog-site-") as name:
        site = Path(name)
        build_site(site).check_returncode()
        with served(site) as address, chromium(found_chromium()) as browser:
            take(browser, address, FOLDER)


if __name__ == "__main__":
    main()
