"""The claim about a bucket's copy; a target of `tests.prove`."""

from collections.abc import Callable

from tests.scenarios.bucket_copy import bucket_copy
from tests.scenarios.cluster import Store
from tests.shortfall import Figures


def prove_copy(short: bool) -> Figures:
    """All killed under load, the bucket copied, a new cluster on the copy: everything is there."""
    if short:
        return {"file": bucket_copy(Store.FILE, load_s=2).as_json()}
    return {store: bucket_copy(store, load_s=30).as_json() for store in Store}


COPY_TARGETS: dict[str, Callable[[bool], Figures]] = {"copy": prove_copy}
