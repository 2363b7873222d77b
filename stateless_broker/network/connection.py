"""A client's connection: frames arrive, and answers leave in request order.

Invariants: answers leave in the order of their requests, whatever finishes first. The broker does
not read from a client that does not read its answers.
"""

import asyncio
import struct
import time
from collections import deque
from collections.abc import Callable
from typing import cast

from bucketlog.log_format.model import Buffer
from bucketlog.log_format.wire.frames import MalformedRequestError
from bucketlog.stateless_broker.authentication.login import Login
from bucketlog.stateless_broker.network.answer_memory import AnswerLease
from bucketlog.stateless_broker.network.connection_owner import (
    ConnectionLimits,
    ConnectionOwner,
    Entrance,
    Service,
)
from bucketlog.stateless_broker.network.exchange import Frame, ResponseSlot, UnsettledChanges
from bucketlog.stateless_broker.network.incoming import RECEIVE_BYTES, Incoming
from bucketlog.stateless_broker.network.memory_budget import MemoryBudget, payer
from bucketlog.stateless_broker.network.muting import Mute
from bucketlog.stateless_broker.network.sending import queued_bytes

_LENGTH = struct.Struct(">i")
_API_KEY = struct.Struct(">h")
PLAIN_ENTRANCE = Entrance()
ANONYMOUS = "User:ANONYMOUS"
"""The principal of a client that has not logged in, and has shown no certificate."""


class Connection(asyncio.BufferedProtocol):
    def __init__(
        self,
        *,
        service: Service,
        budget: MemoryBudget,
        limits: ConnectionLimits,
        receive_buffer: memoryview,
        owner: ConnectionOwner,
        entrance: Entrance = PLAIN_ENTRANCE,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.service = service
        self.entrance = entrance
        self._limits = limits
        self.incoming = Incoming(
            budget=budget,
            receive_buffer=receive_buffer,
            request_bytes_max=limits.request_bytes_max,
            other_request_bytes_max=limits.other_request_bytes_max,
            wake=self._take_soon,
        )
        self._now_s = now_s
        self.owner = owner
        self._transport: asyncio.Transport | None = None
        self._answers: deque[ResponseSlot] = deque()
        self.changes = UnsettledChanges()
        self._others = 0
        self._held: ResponseSlot | None = None
        self._has_begun = self._waits_for_turn = False
        self._reading = self._client_reads = True
        self._hears_of_each_byte = False
        """Whether writing pauses at the first unsent byte, and resumes when all bytes are sent."""
        self._written_bytes = 0
        self._leases: list[AnswerLease] = []
        """Leases of responses that the kernel has not taken completely."""
        self._mute = Mute(now_s, self._take_frames)
        self._closing = self._ended = False
        self._flush_is_due = False
        self._waiting: set[asyncio.Task[None]] = set()
        self.active_s = now_s()
        """Time when the connection was opened, or last received a request or sent a response."""
        self.listener = entrance.listener
        """The name of the listener that the connection came through."""
        rules = entrance.login_rules
        self.login = None if rules is None else Login(rules)
        """The state of the client's login. None: the listener has no logins."""
        if rules is not None:
            self.incoming.login_bytes_max = rules.request_bytes_max
        self._login_timer: asyncio.TimerHandle | None = None
        self.principal = ANONYMOUS
        self.peer = ""
        self.host = self.payer = ""
        """The client's address without its port, and the address whose memory the client uses."""

    # asyncio's side --------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=self._limits.response_buffer_bytes)
        address = transport.get_extra_info("peername")
        self.peer = str(address)
        self.host = str(address[0]) if isinstance(address, tuple) else self.peer
        self.payer = self.incoming.address = payer(self.service.tenant, self.host)
        refusal = self.owner.opened(self)
        if refusal is not None:
            self.end(refusal)
        elif self.login is not None:
            rules = self.login.rules
            self._login_timer = asyncio.get_running_loop().call_later(
                rules.ms_max / 1000, self.end, rules.too_slow
            )

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._ended = True
        self._forget_login_timer()
        if self.service.share is not None:
            self.service.share.forget(self._take_frames)
        self._mute.drop()
        self._note_begun(False)
        self.incoming.drop()
        self._give_back()
        for answer in self._answers:
            answer.give_back()
        self._answers.clear()
        self.changes.drop()
        self._held = None
        for task in self._waiting:
            task.cancel()
        self.owner.closed(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.incoming.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self.incoming.arrived(nbytes)
        self._take_frames()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._client_reads = False
        self._read_or_not()

    def resume_writing(self) -> None:
        self._client_reads = True
        self._give_back()
        self._take_frames()

    def shook_hands(self, name: str, version: str) -> None:
        """Count the software that the client has named."""
        self.service.figures.shook_hands(name, version)

    # Frames ----------------------------------------------------------------------------------

    def _take_frames(self) -> None:
        """Take complete requests until a limit of the connection is reached."""
        incoming = self.incoming
        try:
            while not self._ended and (
                incoming.has_frame or (self._may_begin() and self._has_turn())
            ):
                frame = incoming.next_frame()
                if frame is None:
                    break
                self._handle(frame)
            if incoming.is_waiting_for_room and not incoming.has_frame and not self._may_begin():
                incoming.wait_no_more()
            if not self._ended:
                incoming.count_left()
                self._note_begun(incoming.has_frame or self._has_part())
        except MalformedRequestError as error:
            self.end(str(error))
        self._read_or_not()

    def _may_begin(self) -> bool:
        return self.incoming.left_bytes > 0 and self._held is None and self._wants_more()

    def _has_turn(self) -> bool:
        share = self.service.share
        self._waits_for_turn = share is not None and not share.has_turn(self._take_frames)
        return not self._waits_for_turn

    def _has_part(self) -> bool:
        """Return whether a request is partly here, and the client must send the rest."""
        return not self.incoming.is_waiting_for_room and self._may_begin()

    def _note_begun(self, has_begun: bool) -> None:
        if has_begun != self._has_begun:
            self._has_begun = has_begun
            self.owner.receiving(self, has_begun=has_begun)

    def _read_or_not(self) -> None:
        """Pause the socket while no more requests are needed: back-pressure reaches the client."""
        if self._transport is None or self._ended:
            return
        incoming = self.incoming
        is_held = self._held is not None or self._waits_for_turn
        room = not is_held or incoming.left_bytes < RECEIVE_BYTES
        wanted = not incoming.is_waiting_for_room and (
            incoming.has_frame or (self._wants_more() and room)
        )
        if wanted and not self._reading:
            self._transport.resume_reading()
        elif not wanted and self._reading:
            self._transport.pause_reading()
        self._reading = wanted

    def _wants_more(self) -> bool:
        return (
            self._client_reads
            and not self._mute.is_on
            and not self._closing
            and len(self._answers) < self._limits.requests_in_flight
            and self._others < self._limits.other_requests_in_flight
        )

    def mute(self, ms: int) -> None:
        """Begin no further request for this time: the client is over a quota (KIP-219)."""
        if ms > 0 and self._transport is not None:
            self._mute.lengthen(ms)
            self._read_or_not()

    @property
    def muted_ms(self) -> int:
        return self._mute.left_ms if self._mute.is_on else 0

    def _take_soon(self) -> None:
        """Take frames in the next turn of the event loop: the caller is amid other work."""
        asyncio.get_running_loop().call_soon(self._take_frames)

    def _handle(self, frame: Frame) -> None:
        (api_key,) = _API_KEY.unpack_from(frame.data)
        self.active_s = now_s = self._now_s()
        answer = ResponseSlot(self, api_key=api_key, request_bytes=frame.size_bytes, taken_s=now_s)
        self._answers.append(answer)
        self._others += answer.is_not_produce
        self._note_begun(False)
        service = self.service
        if service.share is None:
            service.handler(self, frame, answer)
        else:
            service.share.run(lambda: service.handler(self, frame, answer))

    # Answers ---------------------------------------------------------------------------------

    def hold(self, answer: ResponseSlot | None) -> None:
        self._held = answer
        if answer is None:
            self._take_soon()

    def queue_large_answer(self) -> None:
        self.owner.sent(self)

    def flush_answers(self) -> None:
        """Send ready responses soon: responses that become ready together are written together."""
        if not self._flush_is_due:
            self._flush_is_due = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._write_ready()
        released = self._held is not None and self._held.parts is not None
        if released:
            self._held = None
        if released or not self._reading:
            self._take_frames()

    def _write_ready(self) -> None:
        """Write all ready responses, up to the first that is not ready."""
        self._flush_is_due = False
        if self._transport is None:
            return
        out: list[Buffer] = []
        leases: list[AnswerLease] = []
        now_s = self._now_s()
        while self._answers and (parts := self._answers[0].parts) is not None:
            answer = self._answers.popleft()
            self._others -= answer.is_not_produce
            length = sum(len(part) for part in parts)
            if parts:
                out.append(_LENGTH.pack(length))
                out.extend(parts)
                self._written_bytes += _LENGTH.size + length
            if answer.lease is not None:
                leases.append(answer.lease)
            seconds = now_s - answer.taken_s
            self.service.figures.note(answer, seconds, self.peer, self.principal, length)
        if out and not self._ended:
            self._write(out, leases)
            self.active_s = now_s
            if self.unsent_bytes:
                self.owner.sent(self)
        else:
            for lease in leases:
                lease.release()

    def _write(self, out: list[Buffer], leases: list[AnswerLease]) -> None:
        """Leased responses are large. They are written to the kernel at once, and their memory is
        given back as soon as the kernel has taken all bytes."""
        transport = self._transport
        assert transport is not None
        self._leases += leases
        if leases and not self._hears_of_each_byte:
            self._hears_of_each_byte = True
            transport.set_write_buffer_limits(high=0)
        transport.writelines(out)
        if self._leases and not self.unsent_bytes:
            self._give_back()

    def _give_back(self) -> None:
        for lease in self._leases:
            lease.release()
        self._leases.clear()
        if self._hears_of_each_byte and self._transport is not None:
            self._hears_of_each_byte = False
            self._transport.set_write_buffer_limits(high=self._limits.response_buffer_bytes)

    @property
    def is_gone(self) -> bool:
        return self._transport is None

    @property
    def unsent_bytes(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    @property
    def held_bytes(self) -> int:
        """Memory of responses that the kernel has not taken, or that wait for earlier ones."""
        return sum(lease.held_bytes for lease in self._leases) + self._queued_answer_bytes()

    @property
    def due_bytes(self) -> int:
        return self._written_bytes + self._queued_answer_bytes()

    def _queued_answer_bytes(self) -> int:
        return sum(
            answer.lease.held_bytes
            for answer in self._answers
            if answer.lease is not None and answer.parts is not None
        )

    @property
    def taken_bytes(self) -> int:
        if self._transport is None:
            return self._written_bytes
        return self._written_bytes - self.unsent_bytes - queued_bytes(self._transport)

    def end(self, reason: str) -> None:
        if self._flush_is_due:
            self._write_ready()
        if self._transport is not None and not self._ended:
            self._ended = True
            self.incoming.wait_no_more()
            self._note_begun(False)
            self.owner.ended(self, reason)
            self._transport.abort()

    def give_up_with_client(self, task: "asyncio.Task[None]") -> None:
        """The task works for this client alone: it ends with it."""
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)
        if self._transport is None:
            task.cancel()

    @property
    def is_waiting_for_requests(self) -> bool:
        """Whether all complete requests are answered."""
        return not self._answers

    def take_no_more(self) -> None:
        """Read no further request; those that were begun are taken and answered."""
        self._closing = True
        self._take_frames()

    def logged_in(self, principal: str) -> None:
        """The client is known; again after a re-authentication."""
        self.principal = principal
        self.incoming.login_bytes_max = None
        self._forget_login_timer()

    def _forget_login_timer(self) -> None:
        if self._login_timer is not None:
            self._login_timer.cancel()
            self._login_timer = None

    def finish_because(self, reason: str) -> None:
        """The broker closes the connection after sending the ready responses."""
        if not self._ended:
            self.owner.ended(self, reason)
        self.finish()

    def finish(self) -> None:
        """Close after sending the ready responses."""
        self._closing = True
        self._write_ready()
        if self._transport is not None:
            self._transport.close()
