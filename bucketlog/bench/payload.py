"""The records of a load: values of one size, keys out of a given number.

Values are random hexadecimal digits, so that a codec makes about half of them. They come from a
pool, larger than a batch: making each anew would take longer than sending it.
"""

from random import Random

POOL_BYTES = 4 * 1024 * 1024
POOL_RECORDS_MAX = 65_536
_STRIDE = 2_654_435_761
"""A prime: stepping by it spreads over any number of keys."""


class Payload:
    """`header_bytes` of each value are left for a header."""

    def __init__(
        self, record_bytes: int, *, key_cardinality: int, random: Random, header_bytes: int = 0
    ) -> None:
        body_bytes = record_bytes - header_bytes
        text = random.randbytes(max(POOL_BYTES, body_bytes) // 2 + 1).hex().encode()
        count = max(1, min(POOL_RECORDS_MAX, POOL_BYTES // max(1, body_bytes)))
        spots = (number * body_bytes for number in range(count))
        self._bodies = [text[at : at + body_bytes] for at in spots]
        self._keys = key_cardinality
        self._taken = 0

    def take(self, count: int, header: bytes = b"") -> list[dict[str, bytes]]:
        """The next ones, as `produce_batch` has them; all begin with `header`."""
        first, self._taken = self._taken, self._taken + count
        bodies, keys = self._bodies, self._keys
        size = len(bodies)
        if not keys:
            return [{"value": header + bodies[at % size]} for at in range(first, first + count)]
        return [
            {"value": header + bodies[at % size], "key": b"key-%d" % (at * _STRIDE % keys)}
            for at in range(first, first + count)
        ]
