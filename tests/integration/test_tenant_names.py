"""No API, object or key of Redis shows a tenant the names of another."""

from pathlib import Path

import pytest
from redis import Redis

from bucketlog.tiered_storage.backends.location import open_sync_bucket
from tests.rigs.users import write_key_file
from tests.scenarios.tenant_walk import walk_as_tenant
from tests.servers.broker_process import Start
from tests.servers.tenant_brokers import TENANTS, WALKED, address, tenant_file

pytestmark = pytest.mark.long


def test_no_api_shows_names_of_another_tenant(start: Start, tmp_path: Path, redis_url: str) -> None:
    keys = write_key_file(tmp_path / "keys")
    broker = start(
        **WALKED, tenants_file=str(tenant_file(tmp_path)), credentials_key_file=str(keys)
    ).wait_until_ready()
    with Redis.from_url(redis_url) as redis:
        walk = walk_as_tenant(
            address(broker, "ACME"),
            address(broker, "GLOBEX"),
            tenants=TENANTS,
            bucket_url=f"file://{tmp_path}/bucket",
            redis=redis,
        )
    assert walk.answers > 100
    assert walk.leaks == []
    assert walk.compared > 100
    assert walk.differences == []
    bucket = open_sync_bucket(f"file://{tmp_path}/bucket")
    assert list(bucket.list("")) == [], "there is no log beside those of tenants"
    bucket.close()
    assert "Traceback" not in broker.log.read_text()
