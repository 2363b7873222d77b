"""How clients log in, as the SDK and the command line name it.

It imports nothing, so the command line can show its flags without loading a client.
"""

from typing import Literal

CredentialMechanism = Literal["SCRAM-SHA-512", "SCRAM-SHA-256"]
"""Mechanisms with their own credential. PLAIN uses these credentials."""
Mechanism = Literal["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN", "OAUTHBEARER"]
OAUTHBEARER: Mechanism = "OAUTHBEARER"
DEFAULT_MECHANISM: CredentialMechanism = "SCRAM-SHA-512"
DEFAULT_ITERATIONS = 8192
