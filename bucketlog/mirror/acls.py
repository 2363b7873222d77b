"""Copies the ACLs for the mirrored topics and groups. ACLs in the target are never deleted."""

from collections.abc import Callable, Sequence

from bucketlog.client.acl_rules import Acl
from bucketlog.client.acls import AclAdmin
from bucketlog.log_format.errors import BucketlogError, LogError
from bucketlog.mirror.topics import is_wanted

_OFF = frozenset({"SECURITY_DISABLED"})


def stop_of(topic: str) -> Acl:
    """The ACL by which a cut-over stops the producers of a topic. This ACL is never copied."""
    return Acl(
        principal="User:*", operation="WRITE", resource="TOPIC", name=topic, permission="DENY"
    )


class AclMirror:
    """Copies ACLs from `source` to `target`.

    `topics` and `groups` are shell patterns. `report` gets each ACL that is not copied, once.
    """

    def __init__(
        self,
        source: AclAdmin,
        target: AclAdmin,
        topics: Sequence[str],
        groups: Sequence[str],
        report: Callable[[str], None],
    ) -> None:
        self._source, self._target = source, target
        self._topics, self._groups = topics, groups
        self._report = report
        self._known: set[Acl] = set()
        self._is_off = False

    def sync(self) -> None:
        """Create the ACLs that the target lacks. Raises `LogError`."""
        if self._is_off:
            return
        try:
            wanted = [acl for acl in self._source.list() if self._is_wanted(acl)]
            missing = [acl for acl in wanted if acl not in self._known]
            if missing:
                present = set(self._target.list())
                for acl in missing:
                    self._create(acl, present)
        except LogError as error:
            if error.code not in _OFF:
                raise
            self._is_off = True
            self._report(f"ACLs are not copied: {error.message}")

    def _create(self, acl: Acl, present: set[Acl]) -> None:
        self._known.add(acl)
        if acl in present:
            return
        try:
            self._target.create([acl])
        except BucketlogError as error:
            if isinstance(error, LogError) and error.code in _OFF:
                raise
            self._report(f"the ACL {acl} is not copied: {error}")

    def _is_wanted(self, acl: Acl) -> bool:
        patterns = {"TOPIC": self._topics, "GROUP": self._groups}.get(acl.resource)
        if patterns is None:
            return acl.resource == "TRANSACTIONAL_ID"
        if acl == stop_of(acl.name):
            return False
        if acl.pattern == "PREFIXED" or acl.name == "*":
            return True
        return is_wanted(acl.name, patterns)
