"""The parts of a broker that outlive its epochs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from bucketlog.model import WallClock
from metadata.sequencer.client import Sequencer
from metadata.view import View
from stateless_broker.duties.upkeep import UpkeepCounts
from stateless_broker.epochs.activation import EpochStarter
from stateless_broker.epochs.committed import CommittedLog
from stateless_broker.fetch.feed import Watchers
from stateless_broker.fetch.reading import RangeReader
from stateless_broker.health import Health
from stateless_broker.membership import Membership
from stateless_broker.produce.intake import Intake
from stateless_broker.settings import BrokerSettings
from stateless_broker.supervisor import Supervisor
from tiered_storage.bucket import Bucket


@dataclass(frozen=True, slots=True)
class BrokerParts:
    """`bucket` retries reads and small writes;
    `write_bucket` does not: the commit path does. `on_failure` is told of what nobody expected."""

    settings: BrokerSettings
    write_bucket: Bucket
    bucket: Bucket
    committed: CommittedLog
    starter: EpochStarter
    sequencer: Sequencer
    membership: Membership
    health: Health
    supervisor: Supervisor
    view: View
    watchers: Watchers
    intake: Intake
    reader: RangeReader
    on_failure: Callable[[Exception], None]
    now_ms: WallClock
    new_uuid: Callable[[], UUID]
    upkeep: UpkeepCounts = field(default_factory=UpkeepCounts)
