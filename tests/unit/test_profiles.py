"""Profiles: what the file may hold, what goes before what, and edits that keep the rest."""

import json
import os
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketlog.cli.main import main
from bucketlog.cli.profiles import change, config_path, edited, read_profiles, shown
from bucketlog.log_format.errors import ConfigurationError

Capture = pytest.CaptureFixture[str]
TEXT = """\
# mine
profile = "local"   # the one in use

[profiles.local]
bootstrap = "127.0.0.1:1"
# by hand
output = "json"

[profiles."other"]
bootstrap = "127.0.0.1:2"
redis_url = "redis://me:hidden@there/0"
aws_secret_access_key = "hidden"
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in list(os.environ):
        if name.startswith("BUCKETLOG_"):
            monkeypatch.delenv(name)
    path = config_path(os.environ)
    path.parent.mkdir()
    path.write_text(TEXT)
    return path


def effective(capsys: Capture, *arguments: str) -> dict[str, tuple[str | None, str]]:
    """By setting: value and source."""
    assert main([*arguments, "-o", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    return {row["setting"]: (row["value"], row["source"]) for row in rows}


def test_what_goes_before_what(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY", raising=False)
    found = effective(capsys, "config", "show")
    assert found["profile"] == ("local", "file")
    assert found["bootstrap"] == ("127.0.0.1:1", "profile local")
    assert found["bucket_url"] == (None, "default")
    found = effective(capsys, "--profile", "other", "config", "show", "-b", "x:1")
    assert found["profile"] == ("other", "flag")
    assert found["bootstrap"] == ("x:1", "flag")
    monkeypatch.setenv("BUCKETLOG_PROFILE", "other")
    monkeypatch.setenv("BUCKETLOG_BUCKET_URL", "")
    found = effective(capsys, "config", "show", "--all")
    assert found["profile"] == ("other", "environment")
    assert found["bootstrap"] == ("127.0.0.1:2", "profile other")
    assert found["redis_url"] == ("redis://********@there/0", "profile other")
    assert found["aws_secret_access_key"] == ("********", "profile other")
    assert found["consume_from"] == ("end", "default")
    monkeypatch.setenv("BUCKETLOG_BOOTSTRAP", "y:1")
    monkeypatch.setenv("BUCKETLOG_NONSENSE", "1")
    found = effective(capsys, "config", "show")
    assert found["bootstrap"] == ("y:1", "environment")
    assert found["nonsense"] == ("1", "unknown")


def test_commands_take_it(file: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    before = dict(os.environ)
    assert main(["topic", "list"]) == 1
    assert "127.0.0.1:1: " in capsys.readouterr().err
    assert main(["--profile", "other", "topic", "list"]) == 1
    assert "127.0.0.1:2: " in capsys.readouterr().err
    monkeypatch.setenv("BUCKETLOG_BOOTSTRAP", "127.0.0.1:3")
    assert main(["topic", "list"]) == 1
    assert "127.0.0.1:3: " in capsys.readouterr().err
    monkeypatch.delenv("BUCKETLOG_BOOTSTRAP")
    assert dict(os.environ) == before, "what a command changed is as before"
    assert main(["config", "list"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["profile"], row["in_use"]) for row in rows] == [("local", "*"), ("other", "")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("profile = 1\n", "'profile' is not a name"),
        ("profile =\n", "is not TOML: "),
        ("[profile.a]\n", "'profile' is not a name"),
        ("[other]\n", "unknown key 'other'"),
        ('profile = "a"\n[profiles.a]\nbootstrp = "x:1"\n', "did you mean 'bootstrap'?"),
        (
            'profile = "a"\n[profiles.a]\nbootstrap = ["x:1"]\n',
            "profiles.a.bootstrap is not a text",
        ),
        ('profile = "b"\n[profiles.a]\n', "there is no profile 'b'"),
    ],
)
def test_a_wrong_file_is_one_line(file: Path, capsys: Capture, text: str, said: str) -> None:
    file.write_text(text)
    assert main(["topic", "list"]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert str(file) in told
    assert told.count("\n") == 1


def test_set_and_use(file: Path, capsys: Capture) -> None:
    assert main(["config", "set", "bootstrap", "z:1"]) == 0
    assert main(["config", "use", "other"]) == 0
    assert main(["--profile", "third", "config", "set", "s3_path_style", "true"]) == 0
    text = file.read_text()
    expected = TEXT.replace('"127.0.0.1:1"', '"z:1"')
    expected = expected.replace('profile = "local"   # the one in use', 'profile = "other"')
    assert text == f'{expected}\n[profiles.third]\ns3_path_style = "true"\n'
    assert file.stat().st_mode & 0o077 == 0
    capsys.readouterr()
    assert main(["config", "set", "bootstrp", "x:1"]) == 2
    assert "did you mean 'bootstrap'?" in capsys.readouterr().err
    assert main(["config", "use", "nope"]) == 2
    assert main(["config", "set", "profile", "x"]) == 2
    assert main(["--profile", "a b", "config", "set", "bootstrap", "x:1"]) == 2
    assert file.read_text() == text


def test_the_first_profile_is_in_use(file: Path, capsys: Capture) -> None:
    file.unlink()
    assert main(["config", "set", "bootstrap", "x:1"]) == 0
    capsys.readouterr()
    assert effective(capsys, "config", "show")["bootstrap"] == ("x:1", "profile default")


def test_a_link_stays_one(file: Path) -> None:
    real = file.with_name("real.toml")
    file.rename(real)
    file.symlink_to(real)
    change(file, "local", "output", "jsonl")
    assert file.is_symlink()
    assert read_profiles(real).settings["local"]["output"] == "jsonl"


def test_what_only_its_writer_can_change_stays(file: Path) -> None:
    text = '[profiles]\nlocal = {bootstrap = "a:1"}\n'
    file.write_text(text)
    with pytest.raises(ConfigurationError, match="only its writer"):
        change(file, "local", "bootstrap", "b:1")
    text = '[profiles.local]\nbootstrap = """\noutput = "x"\n"""\n'
    file.write_text(text)
    with pytest.raises(ConfigurationError, match="only its writer"):
        change(file, "local", "output", "json")
    assert file.read_text() == text


names = st.text("abcdefgh_-", min_size=1, max_size=6)
values = st.text(max_size=20)


@given(st.lists(st.tuples(names, st.sampled_from(["output", "port", "zone"]), values), max_size=12))
def test_edits_say_what_was_asked_for(changes: list[tuple[str, str, str]]) -> None:
    text, wanted = "", dict[str, dict[str, str]]()
    for profile, key, value in changes:
        made = edited(text, profile, key, value)
        if made is None:
            assert not value.isprintable()
            continue
        text = made
        wanted.setdefault(profile, {})[key] = value
        assert tomllib.loads(text)["profiles"] == wanted


def test_a_file_that_is_not_there_has_no_profiles(tmp_path: Path) -> None:
    assert read_profiles(tmp_path / "none").settings == {}
    assert read_profiles(Path(os.devnull) / "bucketlog").settings == {}


def test_secrets_are_masked() -> None:
    assert shown("BUCKETLOG_X_PASSWORD", "p") == "********"
    assert shown("BUCKETLOG_REDIS_URL", "redis://:p@h:1/0") == "redis://********@h:1/0"
    assert shown("BUCKETLOG_BUCKET_URL", "s3://b/p") == "s3://b/p"
