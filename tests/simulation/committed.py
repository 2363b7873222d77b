"""The committed segments of the bucket, including those deleted since."""

from itertools import pairwise

from bucketlog.log_format.model import SegmentIndex
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.chains import read_chains
from bucketlog.tiered_storage.segment import decode_footer
from tests.simulation.bucket import PastStore
from tests.simulation.world import World


def committed(world: World) -> list[SegmentIndex]:
    """All committed segments by ticket, from everything that the chains ever held."""
    past = PastStore(world.store)
    found = []
    for chain in read_chains(list(past.list(keys.LOG))).values():
        for info in chain.committed:
            index = decode_footer(info.key, past.get(info.key).data, info.size_bytes)
            assert isinstance(index, SegmentIndex)
            found.append(index)
    found.sort(key=lambda index: index.ticket)
    for before, after in pairwise(found):
        if before.ticket == after.ticket:
            world.trace.violate("order", f"{before.segment} and {after.segment} have one ticket")
    return found
