"""Members of a consumer group, played against the state machine with a clock that is told.

`GroupDriver` keeps every token's answer and fails when one is answered twice or never was asked.
"""

import itertools
from collections.abc import Iterable

from kio.schema.errors import ErrorCode

from bucketlog.consumers.group import Group
from bucketlog.consumers.group_messages import (
    CallerIdentity,
    GroupProtocol,
    GroupResponse,
    GroupState,
    JoinRequest,
    JoinResponse,
    LeavingMember,
    Response,
    SyncRequest,
    SyncResponse,
    Token,
)
from bucketlog.consumers.group_settings import GroupSettings

SETTINGS = GroupSettings()
SESSION_MS = 10_000
REBALANCE_MS = 60_000


def subscription(*topics: str) -> bytes:
    """ConsumerProtocolSubscription 0, without its user data."""
    head = bytes(2) + len(topics).to_bytes(4, "big")
    return head + b"".join(len(each).to_bytes(2, "big") + each.encode() for each in topics)


def asks(
    name: str = "client",
    member_id: str = "",
    protocols: Iterable[tuple[str, bytes]] = (("range", subscription("t")),),
    *,
    instance: str | None = None,
    session_ms: int = SESSION_MS,
    rebalance_ms: int = REBALANCE_MS,
    protocol_type: str = "consumer",
    two_steps: bool = False,
    may_skip: bool = True,
) -> JoinRequest:
    return JoinRequest(
        member_id,
        name,
        "/127.0.0.1",
        session_ms,
        rebalance_ms,
        protocol_type,
        tuple(GroupProtocol(*each) for each in protocols),
        instance_id=instance,
        member_id_required=two_steps,
        may_skip_assignment=may_skip,
    )


class GroupDriver:
    """`ids` maps the names members joined by to the ids they were given."""

    def __init__(self, settings: GroupSettings = SETTINGS) -> None:
        numbers = itertools.count()
        self.group = Group("g", settings, lambda: f"{next(numbers):04}")
        self.now_ms = 1_000_000
        self.asked: set[Token] = set()
        self.answers: dict[Token, Response] = {}
        self.ids: dict[str, str] = {}

    def token(self) -> Token:
        token = Token(len(self.asked))
        self.asked.add(token)
        return token

    def take(self, answers: Iterable[GroupResponse]) -> None:
        for token, response in answers:
            assert token in self.asked, "an answer to no question"
            assert token not in self.answers, "answered twice"
            self.answers[token] = response

    @property
    def waiting(self) -> set[Token]:
        return self.asked - set(self.answers)

    def is_in(self, state: GroupState) -> bool:
        return self.group.state is state

    def join(self, request: JoinRequest) -> Token:
        token = self.token()
        self.take(self.group.join(request, token, self.now_ms))
        return token

    def sync(
        self,
        identity: CallerIdentity,
        assignments: Iterable[tuple[str, bytes]] = (),
        *,
        protocol_name: str | None = None,
    ) -> Token:
        token = self.token()
        request = SyncRequest(identity, tuple(assignments), None, protocol_name)
        self.take(self.group.sync(request, token, self.now_ms))
        return token

    def leave(self, *leaving: LeavingMember) -> list[ErrorCode]:
        outcome = self.group.leave(leaving, self.now_ms)
        self.take(outcome.answers)
        if outcome.error is not ErrorCode.none:
            return [outcome.error]
        return [each.error for each in outcome.members]

    def pass_ms(self, duration_ms: int) -> None:
        """Every deadline on the way is met when it comes."""
        end = self.now_ms + duration_ms
        while (deadline := self.group.next_deadline_ms) is not None and deadline <= end:
            self.now_ms = max(self.now_ms, deadline)
            self.take(self.group.expire(self.now_ms))
        self.now_ms = end

    def joined(self, token: Token) -> JoinResponse:
        response = self.answers[token]
        assert isinstance(response, JoinResponse)
        return response

    def synced(self, token: Token) -> SyncResponse:
        response = self.answers[token]
        assert isinstance(response, SyncResponse)
        return response

    def me(self, name: str) -> CallerIdentity:
        return CallerIdentity(self.ids.get(name, "nobody"), self.group.generation)

    def heartbeat(self, name: str) -> ErrorCode:
        return self.group.heartbeat(self.me(name), self.now_ms)

    def form(self, *requests: JoinRequest) -> None:
        """They join an empty group, which comes to its sync phase: the first one leads."""
        tokens = [(request, self.join(request)) for request in requests]
        while self.group.state is GroupState.PREPARING_REBALANCE:
            self.pass_ms(SETTINGS.initial_rebalance_delay_ms)
        for request, token in tokens:
            assert self.joined(token).error is ErrorCode.none
            self.ids[request.client_id] = self.joined(token).member_id
        assert self.group.state is GroupState.COMPLETING_REBALANCE

    def settle(self, *names: str) -> None:
        """All sync, the leader (named first) last; each is assigned its own name."""
        tokens = [self.sync(self.me(name)) for name in names[1:]]
        wishes = [(self.ids[name], name.encode()) for name in names]
        tokens.append(self.sync(self.me(names[0]), wishes))
        assert all(self.synced(token).error is ErrorCode.none for token in tokens)
        assert self.group.state is GroupState.STABLE


def three_members(settings: GroupSettings = SETTINGS) -> GroupDriver:
    """Leader a, follower b, static s, in the sync phase of generation 1."""
    driver = GroupDriver(settings)
    driver.form(asks("a"), asks("b"), asks("s", instance="s1"))
    return driver


def stable(settings: GroupSettings = SETTINGS) -> GroupDriver:
    driver = three_members(settings)
    driver.settle("a", "b", "s")
    return driver
