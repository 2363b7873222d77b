"""`python -m localstack.run`: a command finds its store, and nothing outlives the two of them."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from localstack.servers import RunningStore
from tests.rigs.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
LIST_AND_FAIL = """
import sys, boto3
client = boto3.client("s3")
print([bucket["Name"] for bucket in client.list_buckets()["Buckets"]])
sys.exit(3)
"""


def lend(*command: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "localstack.run", "minio", "--", *command],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_command_finds_its_store(minio: RunningStore) -> None:
    lent = lend(sys.executable, "-c", LIST_AND_FAIL)
    out, _ = lent.communicate(timeout=PATIENCE_S)
    assert out == "['bucketlog']\n"
    assert lent.returncode == 3, "the command's own"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing ends an orphan")
def test_a_killed_lender_leaves_no_server(minio: RunningStore) -> None:
    with lend("sh", "-c", "echo begun; cat") as lent:
        assert lent.stdout is not None
        assert lent.stdout.readline() == "begun\n"
        children = psutil.Process(lent.pid).children()
        servers = [child for child in children if child.name() == "minio"]
        assert len(servers) == 1
        lent.kill()
        gone, alive = psutil.wait_procs(servers, timeout=PATIENCE_S)
        assert gone == servers
        assert not alive
