"""If a package of an extra is missing, the error gives the command that installs the extra."""

import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import bucketlog
from bucketlog.cli import entry
from bucketlog.cli.main import main
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.extras import PACKAGES, check_installed, explained

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


@pytest.mark.parametrize("extra", PACKAGES)
def test_every_package_of_the_table_is_in_its_extra(extra: str) -> None:
    extras = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    required = " ".join(extras[extra] + extras["arrow"]).lower().replace("-", "_")
    homes = {**packages_distributions(), "py4j": ["pyspark"]}  # which pyspark requires
    for module in PACKAGES[extra]:
        assert any(name.lower().replace("-", "_") in required for name in homes[module]), module


def test_what_is_installed_passes() -> None:
    for extra in PACKAGES:
        check_installed(extra)


def test_a_larger_extra_may_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    with pytest.raises(ConfigurationError, match=r"uvloop .*'bucketlog\[embedded\]'"):
        check_installed("broker", extra="embedded")


def test_a_module_of_no_extra_is_a_defect() -> None:
    assert explained(ModuleNotFoundError("No module named 'x'", name="x")) is None
    assert explained(ModuleNotFoundError("No module named ''")) is None


def test_the_smallest_extra_is_named() -> None:
    found = explained(ModuleNotFoundError("", name="crc32c._crc32c"))
    assert str(found) == "crc32c is not installed (pip install 'bucketlog[replay]')"


def test_replay_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(ConfigurationError, match=r"bucketlog\[replay\]"):
        bucketlog.replay("memory://x", "t")


def test_a_cluster_names_its_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(ConfigurationError, match=r"redis .*bucketlog\[embedded\]"):
        bucketlog.EmbeddedCluster(tmp_path)


@pytest.mark.parametrize(
    ("module", "arguments", "extra"),
    [
        ("kio", ["dev"], "embedded"),
        ("kio", ["broker"], "broker"),
        ("numpy", ["replay", "memory://x", "t"], "replay"),
    ],
)
def test_a_command_names_its_extra(
    module: str,
    arguments: list[str],
    extra: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == (
        f"bucketlog: {module} is not installed (pip install 'bucketlog[{extra}]')\n"
    )


@pytest.mark.parametrize(("missing", "raised"), [("typer", SystemExit), ("json", ImportError)])
def test_the_console_script_without_the_command_line(
    missing: str,
    raised: type[BaseException],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import bucketlog.cli

    monkeypatch.delattr(bucketlog.cli, "main")
    for module in [name for name in sys.modules if name.startswith("bucketlog.cli.")]:
        if module != entry.__name__:
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(raised) as caught:
        entry.run()
    if isinstance(caught.value, SystemExit):
        assert caught.value.code == 2
        line = "bucketlog: typer is not installed (pip install 'bucketlog[cli]')\n"
        assert capsys.readouterr().err == line
