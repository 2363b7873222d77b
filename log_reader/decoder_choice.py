"""Which decoder reads the next records: the plain one, or the compiled one.

Importing numba takes about as long as decoding 200,000 records plainly, so a process that reads a
few records never imports it. Both decoders give the same columns.
"""

PLAIN_RECORDS_MAX = 100_000
"""After this number of records, a process imports numba and uses the compiled decoder."""


class DecoderChoice:
    """Counts the records that were left to the plain decoder. Threads may share a choice: a lost
    count only delays the compiled decoder."""

    def __init__(self, plain_records_max: int = PLAIN_RECORDS_MAX) -> None:
        self._left = plain_records_max

    def expect(self, records: int) -> None:
        """Notes that `records` records will be decoded: if they are too many for the plain decoder,
        it decodes none of them."""
        if records > self._left:
            self._left = -1

    def compiles(self, records: int) -> bool:
        """Whether the compiled decoder is to read the next `records` records."""
        self._left = max(-1, self._left - records)
        return self._left < 0


PROCESS = DecoderChoice()
"""Of this process: numba is imported at most once."""
