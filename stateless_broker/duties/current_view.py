"""The broker's view, and how a duty checks how current the view is."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bucketlog.log_format.model import Ticket
from bucketlog.metadata.view import View


@dataclass(frozen=True, slots=True)
class CurrentView:
    """`catch_up` waits, at most for the given milliseconds, until the view shows everything that
    was visible at the call. It returns whether the view does. `newest_ticket` is the highest ticket
    that the view shows, `visible` the number of the last segment that it shows."""

    view: View
    catch_up: Callable[[int], Awaitable[bool]]
    newest_ticket: Callable[[], Ticket]
    visible: Callable[[], int]
