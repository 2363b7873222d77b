"""The screen of `bucketlog top`: a thread looks at the cluster, and textual shows the samples.

Invariants: the thread that looks never touches widgets, and the screen never waits for a broker.
Text has no effect on the screen: markup is shown, and control characters are escaped.
"""

import asyncio
import signal
import threading
from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Footer, Input, Static

from bucketlog.cli.live.sample import Look, Sample, sample_of
from bucketlog.cli.live.tables import BROKER_CAPTION, Order, broker_lines, group_lines, topic_lines
from bucketlog.cost.assumptions import Assumptions
from bucketlog.log_format.errors import BucketlogError
from bucketlog.log_format.printable import printable
from bucketlog.terminal import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_TERMINATED

LEAVE_S_MAX = 5.0
"""Longest wait for the last look when the screen is closed."""
FILTER_CHARS_MAX = 249
"""The longest name of a topic."""
MARGIN = 2
"""Columns for the scroll bar."""


class LiveView(App[None]):
    """The application. `look` is called with the filter, in a thread, and may raise
    `BucketlogError`."""

    CSS = """
    #health { height: auto; padding: 0 1 1 0; text-style: bold; }
    #health.unhealthy { color: $text-error; }
    #filter { display: none; height: 3; }
    #filter.shown { display: block; }
    #tables { height: 1fr; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("l", "order('load')", "Load and lag"),
        Binding("r", "order('records')", "Records"),
        Binding("t", "order('time')", "Lag time"),
        Binding("n", "order('name')", "Name"),
        Binding("ctrl+c", f"end({EXIT_INTERRUPTED})", show=False, priority=True),
        Binding("escape", "clear", "No filter", show=False),
    ]

    def __init__(
        self,
        look: Callable[[str], Look],
        *,
        prices: Assumptions,
        interval_s: float,
        wanted: str = "",
    ) -> None:
        super().__init__()
        self._look = look
        self._prices = prices
        self._interval_s = interval_s
        self.wanted = wanted
        """The part of a name that topics and groups must have."""
        self.order = Order.LOAD
        self.sample: Sample | None = None
        """The last sample; None before the first look has ended."""
        self._failure = "looking at the cluster …"
        self._wake = threading.Event()
        self._has_widgets = False
        self._is_over = False
        self._thread = threading.Thread(target=self._look_again_and_again, daemon=True)

    def compose(self) -> ComposeResult:
        yield Static(id="health", markup=False)
        yield Input(
            self.wanted, placeholder="part of a name", id="filter", max_length=FILTER_CHARS_MAX
        )
        with VerticalScroll(id="tables"):
            yield Static(id="text", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        self._has_widgets = True
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self.action_end, EXIT_TERMINATED)
        self.query_one("#tables").focus()
        self._draw()
        self._thread.start()

    def on_unmount(self) -> None:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)
        self._is_over = True
        self._wake.set()

    def wait_for_look(self) -> None:
        """Wait until the last look has ended, at most `LEAVE_S_MAX`."""
        if self._thread.is_alive():
            self._thread.join(LEAVE_S_MAX)

    def on_resize(self) -> None:
        self._draw()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.wanted = event.value
        self._hide_filter()
        self._wake.set()

    def action_end(self, code: int) -> None:
        """End the view and the command with this exit code."""
        self.exit(return_code=code)

    def action_filter(self) -> None:
        field = self.query_one("#filter", Input)
        field.add_class("shown")
        field.value = self.wanted
        field.focus()

    def action_clear(self) -> None:
        self.wanted = ""
        self._hide_filter()
        self._wake.set()

    def action_order(self, order: str) -> None:
        self.order = Order(order)
        self._draw()

    def _hide_filter(self) -> None:
        self.query_one("#filter").remove_class("shown")
        self.query_one("#tables").focus()
        self._draw()

    def _look_again_and_again(self) -> None:
        try:
            self._look_until_over()
        finally:
            if not self._is_over:  # a defect, whose traceback the thread prints
                self.call_from_thread(self.exit, None, EXIT_FAILED, "the view has failed")

    def _look_until_over(self) -> None:
        before: Look | None = None
        while not self._is_over:
            self._wake.clear()
            try:
                now = self._look(self.wanted)
            except BucketlogError as error:
                self._report(None, str(error))
            else:
                self._report(sample_of(before, now, self._prices), "")
                before = now
            self._wake.wait(self._interval_s)

    def _report(self, sample: Sample | None, failure: str) -> None:
        """Show a look's result; called in the thread that looks."""
        if self._is_over:
            return
        try:
            self.call_from_thread(self._show, sample, failure)
        except RuntimeError:  # the screen was closed in the meantime
            return

    def _show(self, sample: Sample | None, failure: str) -> None:
        self.sample = sample if sample is not None else self.sample
        self._failure = failure
        self._draw()

    def _draw(self) -> None:
        if not (self._has_widgets and self.is_running):  # a look may end while the screen closes
            return
        health = self.query_one("#health", Static)
        health.set_class(
            bool(self._failure) or not (self.sample and self.sample.is_healthy), "unhealthy"
        )
        known = self.sample.health if self.sample is not None else ""
        health.update(Text(printable(self._failure or known)))
        self.query_one("#text", Static).update(self._text())

    def _text(self) -> Text:
        sample, text = self.sample, Text(no_wrap=False)
        if sample is None:
            return text
        width = max(20, self.size.width - MARGIN)
        tables = [
            topic_lines(sample, self.order, self.wanted, width),
            group_lines(sample, self.order, self.wanted, width),
        ]
        captions: tuple[str, ...] = ()
        if sample.brokers:
            tables.insert(0, broker_lines(sample, width))
            captions = BROKER_CAPTION
        for head, *rows in tables:
            text.append(head, "bold")
            text.append("\n")
            text.append("".join(f"{row}\n" for row in rows))
            text.append("\n")
        filters = [f"filter: {self.wanted} (Esc clears it)"] if self.wanted else []
        notes = [*captions, *sample.notes, *filters]
        text.append("\n".join(map(printable, notes)), "dim")
        return text
