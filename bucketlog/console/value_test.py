"""A `JsonTest` of the values that a search reads: which of them match, and which were not tested.

Invariant: a value is parsed only if it is JSON of at most `bytes_max` bytes; all others match
nothing, and are counted.
"""

import json
from collections.abc import Callable

from bucketlog.console.json_path import JsonTest


class ValueTest:
    """For one search. `decoded` gives the JSON of a value that is stored in another form, None for
    one that cannot be decoded; other values it gives back."""

    def __init__(
        self,
        test: JsonTest,
        *,
        bytes_max: int,
        decoded: Callable[[bytes], bytes | None] = lambda data: data,
    ) -> None:
        self._test = test
        self._bytes_max = bytes_max
        self._decoded = decoded
        self.tested_bytes = 0
        """Counts the bytes of all values until now."""
        self.too_large = 0
        self.not_json = 0

    def matches(self, payload: bytes, span: tuple[int, int] | None) -> bool:
        """Whether the value at `span` matches; None: there is no value."""
        if span is None:
            return False
        begin, end = span
        if end - begin > self._bytes_max:
            self.too_large += 1
            return False
        self.tested_bytes += end - begin
        data = self._decoded(payload[begin:end])
        try:
            if data is None:
                raise ValueError
            value = json.loads(data)
        except (ValueError, RecursionError):  # nested too deeply, or numbers of thousands of digits
            self.not_json += 1
            return False
        return self._test.matches(value)
