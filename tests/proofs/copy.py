"""The claim about a bucket's copy; a target of `tests.proofs`."""

from collections.abc import Callable

from tests.proofs.shortfall import Figures
from tests.scenarios.bucket_copy import bucket_copy
from tests.servers.cluster import Store


def prove_copy(short: bool) -> Figures:
    """All killed under load, the bucket copied, a new cluster on the copy: everything is there."""
    if short:
        return {"file": bucket_copy(Store.FILE, load_s=2).as_json()}
    return {store: bucket_copy(store, load_s=30).as_json() for store in Store}


COPY_TARGETS: dict[str, Callable[[bool], Figures]] = {"copy": prove_copy}
