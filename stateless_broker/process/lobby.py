"""The lobby for clients whose tenant is not known yet, on listeners whose logins name the tenant.

Invariant: only ApiVersions and the requests of the login are answered here, and no answer depends
on a tenant.
"""

import struct

from bucketlog.log_format.model import Buffer
from bucketlog.log_format.wire import fetch
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.frames import FrameReader, MalformedRequestError
from bucketlog.log_format.wire.served_versions import SERVED_VERSIONS
from bucketlog.stateless_broker.assembly.security_apis import LOGIN_APIS
from bucketlog.stateless_broker.network.apis import Request, Routes
from bucketlog.stateless_broker.network.connection import Connection
from bucketlog.stateless_broker.network.connection_owner import Service
from bucketlog.stateless_broker.network.dispatch import Dispatcher
from bucketlog.stateless_broker.network.exchange import Frame, ResponseSlot
from bucketlog.stateless_broker.network.features import served_features
from bucketlog.stateless_broker.network.request_figures import RequestFigures
from bucketlog.stateless_broker.process.hosted_log import ProcessParts
from bucketlog.stateless_broker.settings.broker import BrokerSettings
from bucketlog.stateless_broker.supervision import Supervisor

SERVED = frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
_TRANSACTIONAL = frozenset(
    {
        *(ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN),
        *(ApiKey.TXN_OFFSET_COMMIT, ApiKey.LIST_TRANSACTIONS, ApiKey.DESCRIBE_TRANSACTIONS),
        *(ApiKey.DESCRIBE_PRODUCERS, ApiKey.WRITE_TXN_MARKERS),
    }
)
"""APIs of brokers with transactions."""
_API_KEY = struct.Struct(">h")
_TOO_EARLY = "a request before its tenant is known"


class Lobby:
    def __init__(self, settings: BrokerSettings, parts: ProcessParts) -> None:
        self.supervisor = Supervisor()
        self._dispatcher = Dispatcher(
            supervisor=self.supervisor,
            request_items_max=settings.request_items_max,
            answers=parts.answers,
        )
        self._dispatcher.audit = parts.audit
        has_transactions = settings.transactions
        self._dispatcher.serve(
            Routes(
                authorizer=None,
                apis=LOGIN_APIS,
                produce=_refuse_produce,
                fetch=_refuse_fetch,
                features=served_features(transactions=has_transactions),
                advertised=[
                    key for key in SERVED_VERSIONS if has_transactions or key not in _TRANSACTIONAL
                ],
            )
        )
        figures = RequestFigures(slow_request_ms=settings.slow_request_ms)
        self.service = Service(self._handle, figures)

    def _handle(self, connection: Connection, frame: Frame, answer: ResponseSlot) -> None:
        """Handle a request. Raises `MalformedRequestError`."""
        if _API_KEY.unpack_from(frame.data)[0] not in SERVED:
            frame.release()
            raise MalformedRequestError(_TOO_EARLY)
        self._dispatcher.handle(connection, frame, answer)


def _refuse_produce(
    request: Request, frame: Frame, reader: FrameReader, answer: ResponseSlot
) -> None:
    frame.release()
    raise MalformedRequestError(_TOO_EARLY)


async def _refuse_fetch(request: Request, message: fetch.FetchRequest) -> list[Buffer]:
    raise MalformedRequestError(_TOO_EARLY)
