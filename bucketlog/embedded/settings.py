"""Variables of the brokers of an embedded cluster: those of all, and those of each. Pure."""

from collections.abc import Mapping, Sequence

from bucketlog.embedded.ports import HIGHEST_PORT

HTTP_PORT = "http_port"
EMBEDDED_SETTINGS = {
    "flush_interval_ms": "0",
    "group_consumer_assignment_interval_ms": "0",
    "group_initial_rebalance_delay_ms": "0",
    "handover_ms": "0",
    "start_timeout_ms": "15000",
    HTTP_PORT: "0",
}
SEVERAL_SETTINGS = {"heartbeat_interval_ms": "200"}
"""Beside them where brokers are to hear of each other soon."""
COUNTED = "advertised_port"
"""The port that clients see. A given port is the first broker's; the others count on from it."""


def variable(setting: str) -> str:
    return f"BUCKETLOG_{setting.upper()}"


def shared_variables(
    settings: Mapping[str, str], fixed: Mapping[str, str], *, brokers: int
) -> dict[str, str]:
    """Of all brokers; `settings` may change the usual values, but not those of `fixed`."""
    several = SEVERAL_SETTINGS if brokers > 1 else {}
    told = {**EMBEDDED_SETTINGS, **several, **settings, **fixed}
    return {variable(name): text for name, text in told.items()}


def first_http_port(settings: Mapping[str, str]) -> int:
    """Return the given port of the first broker's HTTP endpoint; 0 (any) if none is given. Also
    return 0 if the value is not a port: the brokers then refuse the value."""
    text = settings.get(HTTP_PORT, EMBEDDED_SETTINGS[HTTP_PORT])
    return int(text) if text.isdecimal() and int(text) <= HIGHEST_PORT else 0


def own_variables(
    given: Mapping[str, str], ports: Sequence[int], http_ports: Sequence[int], *, is_alone: bool
) -> list[dict[str, str]]:
    """By place, beside `given`, the variables of all.

    Node ids and advertised ports that are given count on from there. `is_alone`: no other broker
    can be at their Redis, so that ids are free. Zones differ, unless one is given.
    """
    if len(ports) == 1:
        return [{}]
    first_id = given.get(variable("node_id")) or ("0" if is_alone else "")
    rows: list[dict[str, str]] = []
    for place, (port, http_port) in enumerate(zip(ports, http_ports, strict=True)):
        row = {variable("port"): str(port)}
        if any(http_ports):
            row[variable(HTTP_PORT)] = str(http_port)
        if not given.get(variable("zone")):
            row[variable("zone")] = f"zone-{place}"
        if first_id.isdecimal():
            row[variable("node_id")] = str(int(first_id) + place)
        first = given.get(variable(COUNTED), "")
        if first.isdecimal() and int(first):
            row[variable(COUNTED)] = str(int(first) + place)
        rows.append(row)
    return rows
