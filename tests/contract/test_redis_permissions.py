"""The commands that docs/redis.md gives to the brokers' user are enough, and none too many."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.metadata.sequencer.scripts import SequencerVerb, script_text
from tests.rigs.broker_rig import Rig, create_topic, produce
from tests.rigs.several_brokers import stored
from tests.servers.own_valkey import OwnValkey

DOCS = Path(__file__).parents[2] / "docs" / "redis.md"
ONLY_ELSEWHERE = {"select", "cluster|slots"}
OF_THE_CLIENT = {"eval", "evalsha", "info", "sadd", "unlink", "xread", "time", "subscribe"}


def documented() -> list[str]:
    section = DOCS.read_text().partition("## Permissions")[2]
    return section.split("```")[1].split()


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[OwnValkey]:
    server = OwnValkey(tmp_path)
    server.start()
    yield server
    server.stop()


async def test_a_broker_needs_no_more(valkey: OwnValkey) -> None:
    with Redis(unix_socket_path=str(valkey.path)) as redis:
        redis.execute_command("ACL", "SETUSER", "broker", "on", ">secret", "-@all", *documented())
    rig = Rig(f"unix://broker:secret@{valkey.path}")
    try:
        await rig.start()
        await create_topic(rig, "t")
        assert (await produce(rig, b"kept"))[1] == 0
        valkey.wipe()
        assert (await produce(rig, b"next"))[1] == 1
        assert await stored(rig) == [(0, b"kept"), (1, b"next")]
        await rig.call(ApiKey.LIST_GROUPS, 4, states_filter=())
    finally:
        await rig.stop()


def test_every_command_of_the_scripts_is_there_and_no_other() -> None:
    scripts = "\n".join(map(script_text, SequencerVerb))
    called = {name.lower() for name in re.findall(r"redis\.p?call\('(\w+)'", scripts)}
    called = called - {"pubsub"} | {"pubsub|numsub"}
    given = {word.removeprefix("+") for word in documented() if word.startswith("+")}
    assert given - ONLY_ELSEWHERE == called | OF_THE_CLIENT
