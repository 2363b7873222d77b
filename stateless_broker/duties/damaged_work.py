"""Work that damage stops: set aside, so that the rest continues, and tried again later.

Invariant: damage is reported in every round until the work that found it has gone well, or nobody
asks for that work any more.
"""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bucketlog.log_format.backoff import Backoff
from bucketlog.log_format.encryption_errors import KeyUnavailableError
from bucketlog.log_format.errors import CorruptObjectError, InvalidDataError, ObjectNotFoundError

BACKOFF = Backoff(first_pause_ms=60_000, longest_pause_ms=3_600_000)


@dataclass(frozen=True, slots=True)
class _Damage:
    error: CorruptObjectError | InvalidDataError
    until_s: float
    times: int


class DamagedWork:
    """A piece of work is whatever the caller names it. It waits for a minute after damage was
    found, and for twice as long each time it is found again, up to an hour."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._found: dict[Hashable, _Damage] = {}

    def waits(self, work: Hashable) -> bool:
        found = self._found.get(work)
        return found is not None and self._monotonic() < found.until_s

    @contextmanager
    def damage_of(self, work: Hashable) -> Iterator[None]:
        """Set this piece of work aside if an object is damaged or gone, or if its key is
        unavailable. Other work continues."""
        try:
            yield
        except ObjectNotFoundError as error:
            self._note(work, CorruptObjectError(error.key, 0, "it is gone"))
        except KeyUnavailableError as error:
            self._note(work, InvalidDataError(error.message, remedy=error.remedy))
        except (CorruptObjectError, InvalidDataError) as error:
            self._note(work, error)
        else:
            self._found.pop(work, None)

    def _note(self, work: Hashable, error: CorruptObjectError | InvalidDataError) -> None:
        before = self._found.get(work)
        times = before.times if before is not None else 0
        until_s = self._monotonic() + BACKOFF.pause_s(times)
        self._found[work] = _Damage(error, until_s, times + 1)

    def forget(self, is_over: Callable[[Hashable], bool]) -> None:
        """Work that nobody asks for any more."""
        self._found = {work: found for work, found in self._found.items() if not is_over(work)}

    def raise_if_any(self) -> None:
        """Raise one of the errors, `CorruptObjectError` or `InvalidDataError`, if anything is set
        aside."""
        for found in self._found.values():
            raise found.error
