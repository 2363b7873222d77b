"""The rules of one share group: what its configs say, by Kafka's names, else the broker's. Pure.

Source: Kafka 4.3's GroupConfig.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from bucketlog.consumers.share.settings import ShareRules

_BY_DURATION = re.compile(
    r"by_duration:\+?P(?:(\d{1,9})D)?"
    r"(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})(?:\.(\d{1,9}))?S)?)?",
    re.IGNORECASE | re.ASCII,
)


def starting_age_ms(text: str) -> int | None:
    """Return `share.auto.offset.reset` as an age of records in milliseconds: a group begins at the
    first record that is not older. 0 for `latest`, None for `earliest`. Raises `ValueError`."""
    if text == "latest":
        return 0
    if text == "earliest":
        return None
    found = _BY_DURATION.fullmatch(text)
    if found is None or not any(found.groups()):
        raise ValueError("it must be latest, earliest or by_duration:<PnDTnHnMn.nS>")
    days, hours, minutes, seconds, fraction = (group or "0" for group in found.groups())
    whole_s = ((int(days) * 24 + int(hours)) * 60 + int(minutes)) * 60 + int(seconds)
    return whole_s * 1000 + int(fraction.ljust(3, "0")[:3])


_Change = Callable[[ShareRules, str], ShareRules]
_CHANGES: Mapping[str, _Change] = {
    "share.auto.offset.reset": lambda rules, text: replace(
        rules, starting_age_ms=starting_age_ms(text)
    ),
    "share.isolation.level": lambda rules, text: replace(
        rules, committed_only=text == "read_committed"
    ),
    "share.record.lock.duration.ms": lambda rules, text: replace(rules, lock_ms=int(text)),
    "share.delivery.count.limit": lambda rules, text: replace(rules, deliveries=int(text)),
    "share.partition.max.record.locks": lambda rules, text: replace(rules, record_locks=int(text)),
    "share.renew.acknowledge.enable": lambda rules, text: replace(rules, may_renew=text == "true"),
}


def configured(rules: ShareRules, configs: Mapping[str, str]) -> ShareRules:
    """Return `rules` with the values of the group's configs, which were checked when they were
    set."""
    for name, text in configs.items():
        change = _CHANGES.get(name)
        if change is not None:
            rules = change(rules, text)
    return rules
