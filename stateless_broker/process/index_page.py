"""The page at `/` of the HTTP port: which broker this is, whether it is ready, and the other pages.

Pure: values in, HTML out. Invariants: the page has neither scripts nor styles, and its headers
forbid a browser to run or load any. Every value is escaped, and its length is bounded.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from bucketlog.log_format.printable import printable

VALUE_CHARS_MAX = 300
"""Names and reasons may come from others: a bucket, a Redis, a client."""
REASONS_MAX = 5
BROKERS_MAX = 20
"""A process with tenants has one broker for each tenant."""
HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


class BrokerName(NamedTuple):
    """A broker as its cluster knows it. `tenant` is empty without tenants, `zone` without zones.
    `address` is the address that clients get."""

    tenant: str
    node_id: int
    address: str
    zone: str
    cluster_id: str


class Page(NamedTuple):
    path: str
    text: str
    """Describes what the page answers."""


def index_page(
    brokers: Sequence[BrokerName],
    *,
    version: str,
    is_ready: bool,
    reasons: Mapping[str, str],
    pages: Sequence[Page],
) -> str:
    """Return the page. `brokers` is empty until the process has joined a cluster; `reasons` are the
    problems by part."""
    title = f"bucketlog broker {brokers[0].node_id}" if len(brokers) == 1 else "bucketlog broker"
    shown = [*map(_broker, brokers[:BROKERS_MAX])] or ["The broker has not joined a cluster yet."]
    if len(brokers) > BROKERS_MAX:
        shown.append(f"{len(brokers) - BROKERS_MAX:,} more tenants are not shown.")
    paragraphs = [*shown, readiness_sentence(is_ready, reasons), f"Its version is {version}."]
    links = [
        f'<li><a href="{_html(page.path)}">{_html(page.path)}</a>: {_html(page.text)}</li>'
        for page in pages
    ]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            '<head><meta charset="utf-8"><meta name="color-scheme" content="light dark">',
            '<meta name="viewport" content="width=device-width">',
            f"<title>{_html(title)}</title></head>",
            "<body>",
            f"<h1>{_html(title)}</h1>",
            *(f"<p>{_html(text)}</p>" for text in paragraphs),
            "<ul>",
            *links,
            "</ul>",
            "<p><code>bucketlog console BUCKET</code> shows topics, records, groups and objects."
            "</p>",
            "</body>",
            "</html>",
            "",
        ]
    )


def readiness_sentence(is_ready: bool, reasons: Mapping[str, str]) -> str:
    """Return one sentence: whether the broker is ready for clients, and the problems."""
    state = "The broker is ready for clients" if is_ready else "The broker is not ready for clients"
    if not reasons:
        return f"{state}."
    parts = [f"{_short(part)}: {_short(why)}" for part, why in reasons.items()]
    more = len(parts) - REASONS_MAX
    ending = f"; and {more:,} more in /readyz" if more > 0 else ""
    link = ", but a part has a problem: " if is_ready else ": "
    return f"{state}{link}{'; '.join(parts[:REASONS_MAX])}{ending}."


def _broker(name: BrokerName) -> str:
    tenant = f"Tenant {_short(name.tenant)}: broker" if name.tenant else "Broker"
    zone = f" in zone {_short(name.zone)}" if name.zone else ""
    return (
        f"{tenant} {name.node_id} at {_short(name.address)}{zone} "
        f"belongs to cluster {_short(name.cluster_id)}."
    )


def _short(text: str) -> str:
    return text if len(text) <= VALUE_CHARS_MAX else f"{text[:VALUE_CHARS_MAX]}…"


def _html(text: str) -> str:
    return escape(printable(text))
