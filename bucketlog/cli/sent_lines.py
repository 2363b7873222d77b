"""Which lines of an input were acknowledged, and how to continue after one that was not.

Invariant: each line that was handed over is counted once: acknowledged, refused, or open. What is
open is bounded by `OPEN_LINES_MAX` and `OPEN_BYTES_MAX`, below what a producer's queue has room
for.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from shlex import quote
from tempfile import NamedTemporaryFile
from typing import Protocol

from bucketlog.log_format.errors import BucketlogError, InvalidDataError, LogError

OPEN_LINES_MAX = 50_000
OPEN_BYTES_MAX = 32 * 1024 * 1024
RANGES_MAX = 20
"""More become a file: as a command nobody would read them."""


class SendOutcome(Protocol):
    """Of one record, as `Delivery` of the SDK."""

    @property
    def done(self) -> bool: ...
    @property
    def error(self) -> BucketlogError | None: ...


class SentLines:
    """`source` is what messages call the input; `path` is where it can be read again, None for
    standard input. `wait` is called while too much is open."""

    def __init__(
        self, source: str, topic: str, *, path: str | None, wait: Callable[[], object]
    ) -> None:
        self.acknowledged = 0
        self.last = 0
        """Number of the last line that was handed over, from 1."""
        self._source = source
        self._topic = topic
        self._path = path
        self._wait = wait
        self._open: deque[tuple[int, SendOutcome, int]] = deque()
        self._open_bytes = 0
        self._refused: list[tuple[int, BucketlogError]] = []
        self._keyless: set[int] = set()
        """Lines without a key, of those that are open or refused."""

    def add(self, number: int, outcome: SendOutcome, sent_bytes: int, *, has_key: bool) -> bool:
        """Whether to continue: no line is known to be refused."""
        self._open.append((number, outcome, sent_bytes))
        self._open_bytes += sent_bytes
        if not has_key:
            self._keyless.add(number)
        self.last = number
        self.settle()
        while self._is_full() and not self._refused:
            self._wait()
            self.settle()
        return not self._refused

    def _is_full(self) -> bool:
        return len(self._open) >= OPEN_LINES_MAX or self._open_bytes >= OPEN_BYTES_MAX

    def settle(self) -> None:
        """Count the outcomes that are known by now, up to the first that is not."""
        while self._open and self._open[0][1].done:
            number, outcome, sent_bytes = self._open.popleft()
            self._open_bytes -= sent_bytes
            if outcome.error is None:
                self.acknowledged += 1
                self._keyless.discard(number)
            else:
                self._refused.append((number, outcome.error))

    def explained(
        self, error: BucketlogError, number: int, *, needs_keys: Callable[[], bool]
    ) -> BucketlogError:
        """`error`, met at line `number`, or the first refusal before it: with the line's number,
        what is acknowledged, and how to continue. `needs_keys`: whether the topic does."""
        self.settle()
        place, cause = self._culprit(needs_keys) or (f"line {number}", error)
        message = f"{self._source}, {place}: {cause.message}; {self.summary()}"
        remedy = "; then ".join(
            filter(None, (cause.remedy, self.resume_command(max(number, self.last))))
        )
        if not isinstance(cause, LogError):
            return InvalidDataError(message, remedy=remedy)
        return LogError(
            message,
            code=cause.code,
            kafka_code=cause.kafka_code,
            retriable=cause.retriable,
            remedy=remedy,
        )

    def _culprit(self, needs_keys: Callable[[], bool]) -> tuple[str, BucketlogError] | None:
        """A batch with a record that breaks a rule is refused whole, and librdkafka tells which of
        them it was only where there are several."""
        guilty = [
            (number, error)
            for number, error in self._refused
            if error.code != "INVALID_DIFFERENT_RECORD"
        ] or self._refused
        if not guilty:
            return None
        number, error = guilty[0]
        if error.code != "INVALID_RECORD" or len(self._refused) == 1:
            return f"line {number}", error
        for at, one in guilty:
            if at in self._keyless and one.code == error.code and needs_keys():
                return f"line {at} (without a key, for a compacted topic)", one
        return f"line {number} or another of its batch", error

    def summary(self) -> str:
        one = self.acknowledged == 1
        return f"{self.acknowledged:,} {'record is' if one else 'records are'} acknowledged"

    def resume_command(self, last: int) -> str:
        """A command that sends exactly the lines that are not acknowledged; `last` is the last one
        that was read."""
        lost = {number for number, _ in self._refused} | {number for number, _, _ in self._open}
        if last > self.last:  # read, and never handed over
            lost.add(last)
        rest = last + 1
        while rest - 1 in lost:
            rest -= 1
            lost.remove(rest)
        spans = list(ranges(sorted(lost)))
        script = [f"{span}p" for span in (*spans, f"{rest},$")]
        if len(spans) > RANGES_MAX:
            sed = f"sed -n -f {quote(_kept(script))}"
        else:
            sed = f"sed -n '{';'.join(script)}'"
        if self._path is None:
            return f"send the rest, which is what {sed} gives of the same input"
        return (
            f"send the rest: {sed} {quote(self._path)} | "
            f"bucketlog produce {quote(self._topic)} with the same flags"
        )


def _kept(script: Iterable[str]) -> str:
    """The path of a file with it, which stays."""
    with NamedTemporaryFile("w", prefix="bucketlog-", suffix=".sed", delete=False) as file:
        file.writelines(f"{line}\n" for line in script)
    return file.name


def ranges(numbers: Iterable[int]) -> Iterator[str]:
    """Ascending numbers as sed has them: "3", "5,8"."""
    first = last = -1
    for number in numbers:
        if number == last + 1 and first >= 0:
            last = number
            continue
        if first >= 0:
            yield _span(first, last)
        first = last = number
    if first >= 0:
        yield _span(first, last)


def _span(first: int, last: int) -> str:
    return f"{first}" if first == last else f"{first},{last}"
