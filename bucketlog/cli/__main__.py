"""`python -m bucketlog.cli` is `bucketlog`."""

from bucketlog.cli.entry import run

run()
