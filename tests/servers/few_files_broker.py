"""A broker whose process may open at most `OPEN_FILES` files."""

import os
import resource
import sys

from bucketlog.stateless_broker.process.main import run

if __name__ == "__main__":
    limit = int(os.environ["OPEN_FILES"])
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit // 2, limit))
    sys.exit(run())
