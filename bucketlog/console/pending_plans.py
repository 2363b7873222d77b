"""The plans that pages show, until somebody applies them.

Invariants: a plan is applied at most once, and only up to the age `age_ms_max`. At most `plans_max`
plans are kept. The id of a plan cannot be guessed.
"""

import threading
from collections.abc import Callable

from bucketlog.console.changes import ChangePlan
from bucketlog.log_format.errors import BucketlogError
from bucketlog.log_format.model import WallClock


class PlanGoneError(BucketlogError):
    """A plan was already applied, is too old, or was dropped because of newer plans."""

    code = "PLAN_GONE"


class PendingPlans:
    """The plans that may be applied. Several threads may use one instance. `new_id` returns a new
    id that cannot be guessed."""

    def __init__(
        self, *, plans_max: int, age_ms_max: int, now_ms: WallClock, new_id: Callable[[], str]
    ) -> None:
        self._plans_max = plans_max
        self._age_ms_max = age_ms_max
        self._now_ms = now_ms
        self._new_id = new_id
        self._lock = threading.Lock()
        self._plans: dict[str, tuple[int, ChangePlan]] = {}
        """The plans by id, the oldest first."""

    def add(self, plan: ChangePlan) -> str:
        """Keep the plan, and return its id. At the limit, the oldest plan is dropped."""
        plan_id = self._new_id()
        with self._lock:
            self._plans[plan_id] = self._now_ms(), plan
            while len(self._plans) > self._plans_max:
                del self._plans[next(iter(self._plans))]
        return plan_id

    def take(self, plan_id: str) -> ChangePlan:
        """Remove the plan, and return it. Raises `PlanGoneError`."""
        with self._lock:
            made_ms, plan = self._plans.pop(plan_id, (0, None))
            if plan is None or not 0 <= self._now_ms() - made_ms <= self._age_ms_max:
                raise PlanGoneError(
                    "this plan was already applied, or is too old",
                    remedy="check the log, and fill in the form again if the change is missing",
                )
        return plan
