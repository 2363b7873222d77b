"""Lends an S3 store to a command: `python -m localstack.run minio -- bucketlog demo`.

The command finds it by the AWS_* variables and an empty bucket by BUCKETLOG_BUCKET_URL; when it
ends, the store ends, and the data is thrown away unless --data says where to keep it.
"""

import argparse
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from bucketlog.log_format.errors import BucketlogError
from localstack.servers import StoreName, running

BUCKET = "bucketlog"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="localstack.run", description=__doc__.splitlines()[0])
    parser.add_argument("store", choices=[*StoreName])
    parser.add_argument("--data", type=Path, help="keep the store's data there")
    parser.add_argument("--port", type=int, default=0, help="default: any free one")
    parser.add_argument("command", nargs="+", metavar="COMMAND")
    options = parser.parse_args(arguments)
    with ExitStack() as closing:
        folder = options.data or Path(
            closing.enter_context(TemporaryDirectory(prefix="bucketlog-store-"))
        )
        try:
            store = closing.enter_context(
                running(StoreName(options.store), folder, port=options.port)
            )
        except BucketlogError as error:
            sys.stderr.write(f"{error}\n")
            return 2
        store.make_bucket(BUCKET)
        environment = {
            **os.environ,
            **store.environment(),
            "BUCKETLOG_BUCKET_URL": f"s3://{BUCKET}",
        }
        command = subprocess.Popen(options.command, env=environment)
        while True:
            try:
                return command.wait()
            except KeyboardInterrupt:
                continue  # the command has had it, too
    raise AssertionError("unreachable")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
