"""What a proof says while it runs: on stderr, because its figures are on stdout."""

import sys


def tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
