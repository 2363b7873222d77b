"""Groups of the consumer protocol, step by step: regular expressions, limits, sessions."""

from dataclasses import replace
from typing import Any

import ormsgpack
import pytest
from kio.schema.errors import ErrorCode

from bucketlog.consumers.group import Group
from bucketlog.consumers.group_forms import GroupForms, commit_refusal, stored
from bucketlog.consumers.group_messages import CallerIdentity
from bucketlog.consumers.group_settings import GroupSettings
from bucketlog.consumers.modern_group import ModernGroup
from bucketlog.consumers.modern_messages import (
    HeartbeatAnswer,
    ModernHeartbeat,
    ModernState,
)
from bucketlog.consumers.stored_modern_group import MODERN_VERSION, restore_modern
from bucketlog.log_format.errors import InvalidDataError
from tests.models.modern_groups import SETTINGS, ModelTopics, forms, joins, refused

NOW_MS = 1_000_000


def modern(made: GroupForms, *requests: ModernHeartbeat) -> tuple[ModernGroup, HeartbeatAnswer]:
    """A group in which these members have joined, and the last one's answer."""
    group: ModernGroup | Group = made.new("g")
    answers: list[HeartbeatAnswer] = []
    for request in requests:
        heard = made.heartbeat(group, request, NOW_MS)
        assert isinstance(heard.answer, HeartbeatAnswer), heard.answer
        answers.append(heard.answer)
        group = heard.group
    assert isinstance(group, ModernGroup)
    return group, answers[-1]


# regular expressions


def test_the_topics_of_a_regex_come_when_it_is_resolved() -> None:
    group, answer = modern(forms(), joins(topics=None, regex="a.*"))
    assert answer.assignment == {}
    assert group.regexes_due(NOW_MS) == ("a.*",)
    group.resolve({"a.*": frozenset({"ab", "ac"})}, 0, NOW_MS)
    assert group.regexes_due(NOW_MS) == ()
    assert group.state is ModernState.ASSIGNING
    answered = group.consumer_heartbeat(ModernHeartbeat("m", answer.member_epoch), NOW_MS)
    assert isinstance(answered, HeartbeatAnswer)
    assert answered.assignment is not None
    assert sum(len(numbers) for numbers in answered.assignment.values()) == 4


def test_topics_that_come_later_are_found() -> None:
    made = forms()
    group, _ = modern(made, joins(topics=None, regex="a.*"))
    group.resolve({"a.*": frozenset({"ab"})}, made.topics.version, NOW_MS)
    assert isinstance(made.topics, ModelTopics)
    made.topics.grow("ac")
    assert group.regexes_due(NOW_MS) == ()
    later_ms = NOW_MS + SETTINGS.regex_refresh_interval_ms_min + 1
    assert group.regexes_due(later_ms) == ("a.*",)


def test_a_regex_is_forgotten_with_its_last_member() -> None:
    group, answer = modern(forms(), joins(topics=None, regex="a.*"))
    group.resolve({"a.*": frozenset({"ab"})}, 0, NOW_MS)
    group.consumer_heartbeat(ModernHeartbeat("m", -1), NOW_MS)
    assert group.machine.resolved == {}
    assert answer.member_epoch == 1


@pytest.mark.parametrize("regex", ["(", r"(a)\1", "(?=a)", "a{2000}", "x" * 2_000])
def test_a_regex_that_may_backtrack_or_grow_is_refused(regex: str) -> None:
    made = forms()
    heard = made.heartbeat(made.new("g"), joins(regex=regex), NOW_MS)
    assert refused(heard) is ErrorCode.invalid_regular_expression
    assert isinstance(heard.group, Group)


def test_a_group_has_a_limit_of_regexes() -> None:
    made = forms(replace(SETTINGS, regexes_max=1))
    group, _ = modern(made, joins(regex="a"))
    request = joins("other", regex="b")
    assert refused(made.heartbeat(group, request, NOW_MS)) is ErrorCode.invalid_regular_expression


# limits


def test_a_full_group_takes_nobody_and_keeps_its_members() -> None:
    made = forms(replace(SETTINGS, members_max=1))
    group, answer = modern(made, joins())
    heard = made.heartbeat(group, joins("other"), NOW_MS)
    assert refused(heard) is ErrorCode.group_max_size_reached
    assert made.heartbeat(group, ModernHeartbeat("m", answer.member_epoch), NOW_MS).answer


def test_a_subscription_has_a_limit() -> None:
    made = forms(replace(SETTINGS, classic=GroupSettings(member_metadata_bytes_max=500)))
    many = frozenset(f"topic-{number}" for number in range(100))
    heard = made.heartbeat(made.new("g"), joins(topics=many), NOW_MS)
    assert refused(heard) is ErrorCode.invalid_request


def test_a_group_has_a_limit_of_bytes() -> None:
    made = forms(replace(SETTINGS, classic=GroupSettings(group_bytes_max=1_000)))
    group, _ = modern(made, joins())
    many = frozenset(f"topic-{number}" for number in range(100))
    heard = made.heartbeat(group, joins("other", topics=many), NOW_MS)
    assert refused(heard) is ErrorCode.group_max_size_reached


# sessions


def test_a_silent_member_is_fenced() -> None:
    group, answer = modern(forms(), joins())
    group.expire(NOW_MS + SETTINGS.session_timeout_ms)
    late = group.consumer_heartbeat(ModernHeartbeat("m", answer.member_epoch), NOW_MS)
    assert refused(late) is ErrorCode.unknown_member_id


def test_a_member_that_does_not_revoke_is_fenced() -> None:
    made = forms()
    group, _ = modern(made, joins(), joins("other"))
    told = group.consumer_heartbeat(ModernHeartbeat("m", 2), NOW_MS)
    assert isinstance(told, HeartbeatAnswer)
    assert group.next_deadline_ms == NOW_MS + 1_000
    group.expire(NOW_MS + 1_000)
    assert "m" not in group.machine.members


# configs of a group


def test_the_configs_of_a_group_apply_at_once() -> None:
    configs = {"consumer.heartbeat.interval.ms": "7000", "share.session.timeout.ms": "1"}
    made = forms(configs=configs)
    group, answer = modern(made, joins())
    assert answer.heartbeat_interval_ms == 7_000
    assert group.next_deadline_ms == NOW_MS + SETTINGS.session_timeout_ms
    configs["consumer.session.timeout.ms"] = "50000"
    made.heartbeat(group, ModernHeartbeat("m", answer.member_epoch), NOW_MS)
    assert group.next_deadline_ms == NOW_MS + 50_000
    assert made.restored(stored(group), NOW_MS).next_deadline_ms == NOW_MS + 50_000
    configs |= {"consumer.assignment.interval.ms": "3000"}
    made.heartbeat(group, joins("other"), NOW_MS + 2_999)
    assert group.machine.epoch > group.machine.target_epoch
    configs.clear()
    heard = made.heartbeat(group, ModernHeartbeat("m", answer.member_epoch), NOW_MS + 2_999)
    assert isinstance(heard.answer, HeartbeatAnswer)
    assert heard.answer.heartbeat_interval_ms == SETTINGS.heartbeat_interval_ms
    assert group.machine.epoch == group.machine.target_epoch


# lost responses


def beats(group: ModernGroup, **fields: Any) -> HeartbeatAnswer:
    answer = group.consumer_heartbeat(replace(ModernHeartbeat("m", 2), **fields), NOW_MS)
    assert isinstance(answer, HeartbeatAnswer), answer
    return answer


def test_partitions_are_shown_until_the_member_reports_them() -> None:
    """To revoke, and then to get."""
    made = forms()
    group, _ = modern(made, joins(), joins("other"))
    kept = beats(group).assignment
    assert kept is not None
    assert beats(group).assignment == kept, "the response was lost"
    reported = beats(group, owned=kept)
    assert (reported.member_epoch, reported.assignment) == (3, None)
    group.consumer_heartbeat(ModernHeartbeat("other", -1), NOW_MS)
    all_of_it = beats(group, member_epoch=3).assignment
    assert all_of_it != kept
    assert beats(group, member_epoch=4).assignment == all_of_it, "the response was lost"
    assert beats(group, member_epoch=4, owned=all_of_it).assignment is None
    assert beats(group, member_epoch=4).assignment is None


@pytest.mark.parametrize(("first", "second"), [("range", "uniform"), ("uniform", "range")])
def test_a_tie_of_assignors_is_decided_as_by_kafka(first: str, second: str) -> None:
    """A description shows `uniform`, and the last member's assignor computes the target."""
    made = forms()
    group, _ = modern(made, joins("z", assignor=first), joins("a", assignor=second))
    assert group.machine.assignor == "uniform"
    (taken,) = group.machine.target["a"].values()
    assert taken == ({0} if second == "range" else {1}), "uniform leaves z its first partition"
    modern_third = made.heartbeat(group, joins("b", assignor="range"), NOW_MS)
    assert isinstance(modern_third.group, ModernGroup)
    assert modern_third.group.machine.assignor == "range"


def test_the_assignor_of_a_member_that_left_is_not_used() -> None:
    made = forms()
    group, _ = modern(made, joins("z", assignor="uniform"), joins("a", assignor="range"))
    group.consumer_heartbeat(ModernHeartbeat("a", -1), NOW_MS)
    assert group.machine.members.take_assignor() == "uniform"


def test_a_member_repeats_its_epoch_without_its_partitions() -> None:
    group, _ = modern(forms(), joins(), joins("other"))
    group.consumer_heartbeat(ModernHeartbeat("other", -1), NOW_MS)
    first = beats(group)
    assert first.member_epoch > 2
    again = beats(group)
    assert again.member_epoch == first.member_epoch
    older = group.consumer_heartbeat(ModernHeartbeat("m", 1), NOW_MS)
    assert refused(older) is ErrorCode.fenced_member_epoch


def test_another_coordinator_shows_partitions_once() -> None:
    made = forms()
    group, answer = modern(made, joins())
    restored = made.restored(stored(group), NOW_MS)
    assert isinstance(restored, ModernGroup)
    assert beats(restored).assignment == answer.assignment
    assert beats(restored).assignment is None


# snapshots


def test_what_is_no_snapshot_is_refused() -> None:
    made = forms()
    group, _ = modern(made, joins(), joins("other"))
    fields = ormsgpack.unpackb(stored(group))
    assert isinstance(made.restored(stored(group), NOW_MS), ModernGroup)
    for at in range(1, len(fields)):
        broken = [*fields]
        broken[at] = {"no": "such"}
        with pytest.raises(InvalidDataError):
            restore_modern(broken, lambda _: SETTINGS, NOW_MS)
    twice = [*fields]
    twice[7] = [*fields[7], ["third", *fields[7][0][1:]]]
    with pytest.raises(InvalidDataError, match="partition"):
        restore_modern(twice, lambda _: SETTINGS, NOW_MS)
    assert fields[0] == MODERN_VERSION


# commits


@pytest.mark.parametrize("epoch", [1, -1, 99])
def test_commits_of_versions_without_epochs_are_refused(epoch: int) -> None:
    """As Kafka, whatever the epoch: these versions call it a generation."""
    group, _ = modern(forms(), joins("m"))

    def refusal(member_id: str, *, knows_epochs: bool) -> ErrorCode:
        identity = CallerIdentity(member_id, epoch)
        return commit_refusal(group, identity, (), NOW_MS, knows_epochs=knows_epochs)

    assert refusal("m", knows_epochs=False) is ErrorCode.unsupported_version
    assert refusal("m", knows_epochs=True) is not ErrorCode.unsupported_version
    assert refusal("other", knows_epochs=False) is ErrorCode.unknown_member_id


def test_a_member_joins_again_and_again() -> None:
    """As Kafka: the epoch 0 is never fenced, whatever the member has missed."""
    changes = [frozenset({"ab"}), frozenset({"b"}), frozenset({"ab"}), frozenset[str]()]
    _, answer = modern(forms(), *(joins("m", topics=topics) for topics in changes))
    assert answer.member_epoch > 1
