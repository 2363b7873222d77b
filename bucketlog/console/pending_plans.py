"""The plans that pages show, until somebody applies them.

Invariants: a plan is applied at most once; there are at most `plans_max` plans, and none is older
than `age_ms_max` when a new one comes. The id of a plan cannot be guessed.
"""

import threading
from collections.abc import Callable
from dataclasses import replace

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
        """Keep what is needed to apply the plan, and return its id. At the limit, the oldest plan
        is dropped. The command and the rows may be many times as large as the form."""
        plan_id, kept = self._new_id(), replace(plan, command="", rows=())
        with self._lock:
            now_ms = self._now_ms()
            self._plans = {
                each: (made_ms, old)
                for each, (made_ms, old) in self._plans.items()
                if self._is_valid(made_ms, now_ms)
            }
            self._plans[plan_id] = now_ms, kept
            while len(self._plans) > self._plans_max:
                del self._plans[next(iter(self._plans))]
        return plan_id

    def take(self, plan_id: str) -> ChangePlan:
        """Remove the plan, and return it. Raises `PlanGoneError`."""
        with self._lock:
            made_ms, plan = self._plans.pop(plan_id, (0, None))
            if plan is None or not self._is_valid(made_ms, self._now_ms()):
                raise PlanGoneError(
                    "this plan was already applied, or is too old",
                    remedy="check the log, and fill in the form again if the change is missing",
                )
        return plan

    def _is_valid(self, made_ms: int, now_ms: int) -> bool:
        return 0 <= now_ms - made_ms <= self._age_ms_max
