"""Composes the console that a broker serves: its process, the login, and the forwarding."""

import os

from bucketlog.stateless_broker.network.audit import AuditLog
from bucketlog.stateless_broker.process.console_forwarding import ConsoleForwarder, ForwardingLimits
from bucketlog.stateless_broker.process.console_login import ConsoleLogin
from bucketlog.stateless_broker.process.console_process import ROOT, ConsoleProcess
from bucketlog.stateless_broker.process.hosted_log import HostedLog
from bucketlog.stateless_broker.settings.broker import BrokerSettings


class ServedConsole:
    """The console of the only log of a broker. `process` runs it, `app` answers requests."""

    def __init__(self, settings: BrokerSettings, log: HostedLog, audit: AuditLog | None) -> None:
        self.process = ConsoleProcess(settings, os.environ)
        login = ConsoleLogin(
            settings,
            log.find_credential,
            authorizer=lambda: log.node.parts.log.authorizer,
            has_begun=lambda: log.has_begun,
            audit=audit,
        )
        limits = ForwardingLimits(
            settings.http_console_requests_in_flight,
            settings.http_header_bytes_max,
            settings.http_console_response_ms_max,
            settings.http_console_response_bytes_max,
        )
        self.app = ConsoleForwarder(self.process, login.refusal, limits, root=ROOT)
