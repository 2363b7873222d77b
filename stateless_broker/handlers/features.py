"""UpdateFeatures: the broker's settings determine all levels, so no request changes a level.

An update to the current level of a feature succeeds, and every other update is refused. One refusal
fails the whole request. Source: KIP-584, KIP-1022; Kafka's FeatureControlManager (which error for
what).
"""

from collections.abc import Mapping

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from bucketlog.stateless_broker.authorization.needs import CLUSTER_NOT_AUTHORIZED
from bucketlog.stateless_broker.membership.membership import Membership
from bucketlog.stateless_broker.network.apis import Request

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
FIRST_WITHOUT_RESULTS = 2
"""The first version whose response has no row for each feature."""
FAILED = "The update failed for all features since the following feature had an error: "
NO_DOWNGRADE = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe "
    "or unsafe downgrade."
)
FIXED = "The levels of features follow from the settings of the brokers; no request changes them."


class FeaturesHandler:
    def __init__(self, levels: Mapping[str, int], membership: Membership) -> None:
        """`levels`: the levels of the served features, by name."""
        self._levels = levels
        self._membership = membership

    async def update(
        self, request: Request, message: UpdateFeaturesRequest
    ) -> UpdateFeaturesResponse:
        # if a feature has several updates, only the last update counts
        updates = {update.feature: update for update in message.feature_updates}
        for name, update in updates.items():
            refusal = self._refusal(update)
            if refusal is not None:
                error = f"Invalid update version {update.max_version_level} for feature {name}. "
                return _failed(ErrorCode.invalid_update_version, FAILED + error + refusal)
        response: UpdateFeaturesResponse = {"error_code": ErrorCode.none, "error_message": None}
        if request.header.api_version < FIRST_WITHOUT_RESULTS:
            response["results"] = [
                {"feature": update.feature, "error_code": ErrorCode.none, "error_message": "NONE"}
                for update in message.feature_updates
            ]
        return response

    def _refusal(self, update: FeatureUpdateKey) -> str | None:
        """Return why the update is refused; None if it asks for the current level."""
        level, kind = update.max_version_level, update.upgrade_type
        if update.allow_downgrade:  # a field of version 0, which has no upgrade types
            kind = SAFE_DOWNGRADE
        if kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
            return "The controller does not support the given upgrade type."
        if level < 0:
            return "A feature version cannot be less than 0."
        controller = f"Local controller {self._membership.controller().node_id}"
        current = self._levels.get(update.feature)
        if current is None:
            return f"{controller} does not support this feature."
        if level > current:
            return f"{controller} only supports versions 0-{current}"
        if level < current:
            return NO_DOWNGRADE if kind == UPGRADE else FIXED
        return None


def deny_update(message: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    return _failed(ErrorCode.cluster_authorization_failed, CLUSTER_NOT_AUTHORIZED)


def _failed(error: ErrorCode, why: str) -> UpdateFeaturesResponse:
    return {"error_code": error, "error_message": why, "results": []}
