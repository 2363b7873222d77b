"""What a script may not do: depend on anything but its keys and its arguments."""

import re

import pytest

from bucketlog.metadata.sequencer.scripts import SequencerVerb, script_text

_COMMAND = re.compile(r"redis\.p?call\(\s*'(\w+)'")
_OF_THE_MOMENT = {"TIME", "RANDOMKEY", "SPOP", "SRANDMEMBER", "HRANDFIELD", "ZRANDMEMBER"}
_EXPIRING = re.compile(r"EXPIRE|PEXPIRE|SETEX|GETEX")


@pytest.mark.parametrize("verb", SequencerVerb)
def test_a_script_never_looks_at_a_clock_and_lets_nothing_expire(verb: SequencerVerb) -> None:
    text = script_text(verb)
    commands = _COMMAND.findall(text)
    assert len(commands) == text.count("redis.call(") + text.count("redis.pcall(")
    assert not _OF_THE_MOMENT & set(commands)
    assert not [command for command in commands if _EXPIRING.search(command)]
    assert "SET" not in commands, "could be given an expiry"
    assert "os." not in text
    assert "math.random" not in text
