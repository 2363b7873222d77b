"""`python -m bucketlog.stateless_broker`: one broker. See `stateless_broker.process.main`.

kio imports hypothesis where it is installed, to offer strategies to tests. A broker does not use
them, and the import takes a quarter of a broker's start-up time, so it is prevented here.
"""

import sys

sys.modules["hypothesis"] = None  # type: ignore[assignment]  # None marks it as not importable

from bucketlog.stateless_broker.process.main import run  # noqa: E402  the line above comes first

if __name__ == "__main__":
    sys.exit(run())
