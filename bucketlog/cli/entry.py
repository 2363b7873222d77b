"""The console script. Without the extra `cli` it prints which extra to install, in one line like
every other error of the command line."""

import sys

from bucketlog.log_format.errors import BucketlogError
from bucketlog.log_format.extras import explained

EXIT_USAGE = 2
"""The same as in `bucketlog.terminal`, which cannot be imported without typer."""


def run() -> None:
    try:
        from bucketlog.cli import main
    except ModuleNotFoundError as error:
        missing = explained(error)
        if missing is None:
            raise
        sys.exit(_refused(missing))
    main.run()


def _refused(error: BucketlogError) -> int:
    print(f"bucketlog: {error}", file=sys.stderr)
    return EXIT_USAGE
