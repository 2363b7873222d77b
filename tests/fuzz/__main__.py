"""`python -m tests.fuzz --seed 7 --requests 100000`: start a broker and fuzz it.

`--only NUMBER` sends one request of the seed again; `--replay HEX` sends these bytes. Prints the
figures as a line of JSON; exits with 1 if the broker failed.
"""

import argparse
import json
import sys

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.fuzz.judge import FuzzFailureError
from tests.fuzz.requests import Frame
from tests.fuzz.run import FuzzRun, fuzz, fuzz_cluster


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument(
        "--only", type=int, metavar="NUMBER", help="number of the only request to send"
    )
    parser.add_argument("--replay", metavar="HEX", help="frame to send, as a failure prints it")
    args = parser.parse_args()
    try:
        with fuzz_cluster() as cluster:
            if args.replay is None and args.only is None:
                print(json.dumps(fuzz(cluster, args.requests, seed=args.seed).as_json()))
                return 0
            run = FuzzRun(cluster, args.seed)
            frame = run.generator.frame(args.only) if args.replay is None else _frame(args.replay)
            print(run.send_alone(frame))
    except FuzzFailureError as failure:
        print(failure, *getattr(failure, "__notes__", ()), sep="\n", file=sys.stderr)
        return 1
    return 0


def _frame(text: str) -> Frame:
    return Frame(0, "replayed", ApiKey.API_VERSIONS, 0, bytes.fromhex(text), False, True, None)


if __name__ == "__main__":
    sys.exit(main())
