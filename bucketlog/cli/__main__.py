"""`python -m bucketlog.cli` is `bucketlog`."""

from bucketlog.cli.main import run

run()
