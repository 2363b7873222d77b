"""The pictures of the console in docs/console/: `python -m tests.scenarios.console_pictures`.

Two brokers write a fresh log. The console is connected to two others, and may change the log.
"""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from PIL import Image
from playwright.sync_api import Page, expect

import bucketlog
from bucketlog import Acl, Topic
from bucketlog.client.log import Log
from bucketlog.embedded.cluster import EmbeddedCluster
from tests.models.repository import ROOT
from tests.rigs.console_log import GROUP, ORDERS, PAYMENTS, write_log
from tests.rigs.patience import eventually
from tests.rigs.users import write_key_file
from tests.scenarios.console_walk import PAGES
from tests.servers.browser import WatchedPage, chromium, console_process, found_chromium

FOLDER = ROOT / "docs/console"
WIDTH, HEIGHT, HEIGHT_MAX = 1200, 720, 1400
COLOURS = 128
CHANGE = f"change?do=reset-group&group={GROUP}&to=earliest"
QUERY = """SELECT value->>'$.customer' AS customer, count(*) AS orders,
  round(sum((value->>'$.total')::DOUBLE), 2) AS total
FROM records GROUP BY ALL ORDER BY total DESC LIMIT 8"""

Scheme = Literal["light", "dark"]


def take(folder: Path) -> list[Path]:
    """The pictures' files: NAME-SCHEME.png."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    with TemporaryDirectory(prefix="bucketlog-") as place:
        write_log(Path(place) / "shop")
        settings = {
            "transactions": "true",
            "authorization": "true",
            "super_users": "User:ANONYMOUS",
            "credentials_key_file": str(write_key_file(Path(place) / "keys")),
        }
        with (
            EmbeddedCluster(Path(place) / "shop", brokers=2, settings=settings) as cluster,
            bucketlog.connect(cluster.bootstrap) as log,
            console_process(
                cluster.bucket_url,
                *("--bootstrap", cluster.bootstrap, "--changes"),
                *("--replay-folder", place),
                log_file=Path(place) / "console.log",
                settings={"verify_interval_ms": "0", "lag_interval_ms": "500"},
            ) as address,
            chromium(found_chromium()) as browser,
            _something_of_each(log),
        ):
            schemes: tuple[Scheme, ...] = ("light", "dark")
            for scheme in schemes:
                context = browser.new_context(
                    viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme
                )
                watched = WatchedPage(context, address)
                for name, path in {**PAGES, "change": CHANGE}.items():
                    page = watched.open(path)
                    _prepare(page, name)
                    tall = int(page.evaluate("document.documentElement.scrollHeight"))
                    page.set_viewport_size({"width": WIDTH, "height": min(tall, HEIGHT_MAX)})
                    made.append(folder / f"{name}-{scheme}.png")
                    made[-1].write_bytes(small(page.screenshot()))
                    page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
                assert watched.complaints == []
                context.close()
    return made


def _prepare(page: Page, name: str) -> None:
    """Bring the page into the state of its picture."""
    if name == "verify":
        page.get_by_role("button", name="Check the log").click()
        expect(page.get_by_text("The log is sound")).to_be_visible()
    elif name == "query":
        page.get_by_label("SQL over the table records").fill(QUERY)
        page.get_by_role("button", name="Run the query").click()
        expect(page.locator("#rows-table")).to_be_visible()
    elif name == "change":
        page.get_by_role("button", name="Show the plan").click()
        expect(page.locator("#plan-table")).to_be_visible()


@contextmanager
def _something_of_each(log: Log) -> Iterator[None]:
    """Users, rules, an open transaction and a member of a group."""
    for user in ("ann", "billing", "shop"):
        log.users.set_password(user, "a long secret")
    log.acls.create(
        [
            Acl(principal="User:billing", operation="READ", resource="TOPIC", name=ORDERS),
            Acl(principal="User:billing", operation="READ", resource="GROUP", name=GROUP),
            Acl(principal="User:shop", operation="WRITE", resource="TOPIC", name=ORDERS),
            Acl(
                principal="User:*",
                operation="DELETE",
                resource="TOPIC",
                name="*",
                permission="DENY",
            ),
        ]
    )
    with log.transaction("payer-1") as transaction:
        transaction.send(Topic(PAYMENTS), b'{"state": "paid"}', key=b"1")
    with (
        log.transaction("payer-2", timeout_s=600) as transaction,
        log.consumer(Topic(ORDERS), group="shipping", start="earliest") as consumer,
    ):
        transaction.send(Topic(PAYMENTS), b'{"state": "paid"}', key=b"2")
        eventually(lambda: bool(consumer.poll(timeout_s=1)), "no record")
        consumer.commit()
        yield


def small(picture: bytes) -> bytes:
    """With fewer colours: a third of the bytes."""
    out = io.BytesIO()
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
    return out.getvalue()


if __name__ == "__main__":
    take(FOLDER)
