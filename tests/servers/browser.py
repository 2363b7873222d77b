"""A real Chromium, driven by Playwright, and the console as a process."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.rigs.patience import PATIENCE_S
from tests.rigs.shell import COMMAND
from tests.servers.components import Components

INSTALL = "scripts/install.sh chromium, or your system's package"
PATIENT = {"refresh_wait_ms": str(int(PATIENCE_S * 1000))}
"""Settings with which pages show the newest state of the log, also on a busy machine."""
ADDRESS = re.compile(r"console at (http://\S+)")


@contextmanager
def chromium(program: str) -> Iterator[Browser]:
    """Its sandbox needs a user who is not root."""
    expect.set_options(timeout=PATIENCE_S * 1000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program,
            chromium_sandbox=os.geteuid() != 0,
            args=["--disable-gpu"],
        )
        try:
            yield browser
        finally:
            browser.close()


def chromium_program(components: Components) -> str:
    program = components.program("chromium", INSTALL)
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    components.took_part("Chromium", version.stdout.strip())
    return program


def found_chromium() -> str:
    """For scripts and proofs. Raises `FileNotFoundError`."""
    program = shutil.which("chromium")
    if program is None:
        raise FileNotFoundError(f"chromium is not installed: {INSTALL}")
    return program


class WatchedPage:
    """A page, with what went wrong in it: messages of the policy, errors of scripts, dialogs, and
    requests to other hosts than the console's."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.address = address
        self.page: Page = context.new_page()
        self.complaints: list[str] = []
        self.page.set_default_timeout(PATIENCE_S * 1000)
        self.page.on("console", lambda message: self._complain(message.type, message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("dialog", self._dismiss)
        self.page.on("request", lambda request: self._check_host(request.url))

    def _complain(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.complaints.append(f"{kind}: {text}")

    def _dismiss(self, dialog: Any) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _check_host(self, url: str) -> None:
        if not url.startswith((self.address, "data:", "about:")):
            self.complaints.append(f"request: {url}")

    def open(self, path: str) -> Page:
        response = self.page.goto(self.address + path)
        assert response is not None
        assert response.status < 400, f"{path}: {response.status} {self.page.inner_text('main')}"
        return self.page


@contextmanager
def console_process(
    bucket_url: str,
    *arguments: str,
    log_file: Path,
    settings: dict[str, str] | None = None,
) -> Iterator[str]:
    """`bucketlog console`, on a free port; its address, which ends with a slash. `settings` are
    those of the console, by name without the prefix. Without brokers and Redis in its settings."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("BUCKETLOG_")
    }
    environment |= {
        f"BUCKETLOG_CONSOLE_{name.upper()}": value
        for name, value in (PATIENT | (settings or {})).items()
    }
    with log_file.open("wb") as errors:
        process = subprocess.Popen(
            [*COMMAND, "console", bucket_url, "--port", "0", *arguments],
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        found = ADDRESS.search(line)
        assert found is not None, f"no address: {line!r} {log_file.read_text()}"
        yield found[1]
        assert process.poll() is None, log_file.read_text()
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
        if process.stdout is not None:
            process.stdout.close()
