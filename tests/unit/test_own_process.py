"""A proof in a separate process changes nothing in the caller's process, and shows its errors."""

import os
import signal
import subprocess
import sys

import pytest

from tests.proofs.own_process import in_own_process
from tests.proofs.shortfall import Figures
from tests.rigs.patience import PATIENCE_S

INTERRUPTED = """
import os, signal, sys, threading
from tests.proofs.own_process import in_own_process

def work():
    try:
        os.kill(os.getppid(), signal.SIGTERM)
        threading.Event().wait()
    finally:
        print("cleaned up", flush=True)

signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
in_own_process(work)
"""


def test_the_figures_return_and_the_environment_does_not() -> None:
    def work() -> Figures:
        os.environ["LEFT_BY_A_PROOF"] = "1"
        return {"pid": os.getpid()}

    assert in_own_process(work)["pid"] != os.getpid()
    assert "LEFT_BY_A_PROOF" not in os.environ


def test_an_error_ends_the_process_and_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    def work() -> Figures:
        raise ValueError("no such figure")

    with pytest.raises(RuntimeError, match="ended with exit code 1"):
        in_own_process(work)
    assert "ValueError: no such figure" in capfd.readouterr().err


def test_the_end_of_the_process_is_an_error() -> None:
    def work() -> Figures:
        os.kill(os.getpid(), signal.SIGKILL)
        return {}

    with pytest.raises(RuntimeError, match="ended with exit code -9"):
        in_own_process(work)


def test_an_interrupted_proof_cleans_up() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, done.stdout) == (1, "cleaned up\n")
