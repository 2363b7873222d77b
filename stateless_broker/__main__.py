"""`python -m bucketlog.stateless_broker`: one broker. See `stateless_broker.process.main`."""

import sys

from bucketlog.stateless_broker.process.main import run

if __name__ == "__main__":
    sys.exit(run())
