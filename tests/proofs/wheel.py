"""The claim about the wheel: installed without extras it is small, contains the SDK, and works. A
target of `tests.proofs`.

The wheel is built from this checkout and installed into an empty environment. The cluster that the
program uses runs in the environment of the tests.
"""

import json
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

from bucketlog.embedded.cluster import EmbeddedCluster
from tests.proofs.newcomer import clean_environment
from tests.proofs.shortfall import Figures, ShortfallError

ROOT = Path(__file__).parents[2]
PACKAGES_MAX = 15
"""Of which fewer are installed, bucketlog itself among them."""
OF_PYTHON = {"pip", "setuptools"}
"""What an empty environment holds."""
SHORT_RECORDS, FULL_RECORDS = 1_000, 100_000
PROGRAM = """
import json, sys
from bucketlog import *  # every public name, without any extra
from pydantic import BaseModel


class Line(BaseModel):
    number: int


address, count = sys.argv[1], int(sys.argv[2])
lines = Topic("lines", value=Line, key=str)
with connect(address) as log:
    log.topics.create(lines, partitions=3)
    with log.producer() as producer:
        for number in range(count):
            producer.send(lines, Line(number=number), key=str(number))
    with log.consumer(lines, start="earliest", until="end") as consumer:
        numbers = sorted(record.value.number for record in consumer)
    print(json.dumps({"produced": count, "consumed": len(numbers),
                      "equal": numbers == list(range(count))}))
"""
REFUSED = """
import sys
import bucketlog
try:
    {call}
except bucketlog.ConfigurationError as error:
    print(error)
"""
REFUSALS = {
    "embedded": "bucketlog.EmbeddedCluster('data')",
    "replay": "bucketlog.replay('memory://x', 'lines')",
    "avro": "bucketlog.Avro(dict)",
}
"""By extra, what asks for it without it."""


def prove_wheel(short: bool) -> Figures:
    """`pip install bucketlog` brings under 15 packages and one import root, and sends and reads."""
    with tempfile.TemporaryDirectory(prefix="bucketlog-wheel-") as name:
        folder = Path(name)
        environment = clean_environment(folder, short)
        wheel = built_wheel(folder / "dist")
        python = installed(wheel, folder / "venv", environment)
        packages = packages_of(python)
        figures: Figures = {
            "wheel_kb": round(wheel.stat().st_size / 1000),
            "top_level": top_level(wheel),
            "packages": len(packages),
            "limit": PACKAGES_MAX,
            "names": packages,
            "megabytes": round(megabytes(python), 1),
        }
        with EmbeddedCluster(folder / "data") as cluster:
            count = SHORT_RECORDS if short else FULL_RECORDS
            program = ("-c", PROGRAM, cluster.bootstrap, str(count))
            figures |= json.loads(output_of(python, *program))
        figures["refused"] = refusals(python)
    check(figures)
    return figures


def check(figures: Figures) -> None:
    """Raises `ShortfallError` for the first figure that breaks the claim."""
    if figures["top_level"] != ["bucketlog"]:
        raise ShortfallError(f"the wheel's import roots: {figures['top_level']}", figures)
    if figures["packages"] >= PACKAGES_MAX:
        raise ShortfallError(f"{figures['packages']} packages are installed", figures)
    if not figures["equal"]:
        raise ShortfallError("what was consumed differs from what was produced", figures)
    for extra, line in figures["refused"].items():
        if f"pip install 'bucketlog[{extra}]'" not in line:
            raise ShortfallError(f"without the extra {extra}: {line!r}", figures)


def built_wheel(folder: Path) -> Path:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


def top_level(wheel: Path) -> list[str]:
    """What can be imported once it is installed."""
    with zipfile.ZipFile(wheel) as archive:
        first = {name.partition("/")[0] for name in archive.namelist()}
    return sorted(name for name in first if not name.endswith(".dist-info"))


def installed(wheel: Path, folder: Path, environment: dict[str, str], *beside: str) -> Path:
    """The interpreter of a new environment that holds the wheel, other packages, and what all of
    them require."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, str(wheel), *beside], env=environment, check=True, stdout=subprocess.DEVNULL
    )
    return python


def packages_of(python: Path) -> list[str]:
    listed = output_of(python, "-m", "pip", "list", "--disable-pip-version-check", "--format=json")
    return sorted({row["name"] for row in json.loads(listed)} - OF_PYTHON)


def megabytes(python: Path) -> float:
    """Of what pip has installed, without itself and compiled code."""
    (packages,) = python.parents[1].glob("lib/python*/site-packages")
    own = tuple(f"{name}{end}" for name in OF_PYTHON | {"pkg_resources"} for end in ("/", "-"))
    files = (path for path in packages.rglob("*") if path.is_file() and path.suffix != ".pyc")
    counted = (path for path in files if not str(path.relative_to(packages)).startswith(own))
    return sum(path.stat().st_size for path in counted) / 1e6


def refusals(python: Path) -> dict[str, str]:
    """By extra, the line that a program or a person gets without it."""
    said = {
        extra: output_of(python, "-c", REFUSED.format(call=call)).strip()
        for extra, call in REFUSALS.items()
    }
    command = subprocess.run(
        [python.with_name("bucketlog"), "dev"], capture_output=True, text=True, check=False
    )
    return said | {"cli": command.stderr.strip()}


def output_of(python: Path, *arguments: str) -> str:
    """Raises `ShortfallError` where the program fails."""
    done = subprocess.run(
        [python, "-I", *arguments], capture_output=True, text=True, check=False, cwd=python.parent
    )
    if done.returncode:
        tail = done.stderr.splitlines()[-5:]
        raise ShortfallError("a program of the light installation failed", {"output_tail": tail})
    return done.stdout


WHEEL_TARGETS: dict[str, Callable[[bool], Figures]] = {"wheel": prove_wheel}
