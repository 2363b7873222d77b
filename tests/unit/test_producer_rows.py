"""The log line when new producers are held back."""

import pytest

from bucketlog.metadata.sequencer.producer_rows import LOG_INTERVAL_MS, ProducerRows

REFUSED = ("too_many_producers", -1)


def test_a_line_a_minute_counts_all_refusals(caplog: pytest.LogCaptureFixture) -> None:
    rows = ProducerRows(limit=5)
    rows.note_refusals([[("ok", 3)], []], 0)
    assert not caplog.records
    for now_ms in range(0, LOG_INTERVAL_MS + 1, 1000):
        rows.note_refusals([[("ok", 3), REFUSED], [REFUSED]], now_ms)
    rows.note_refusals([[("ok", 3)]], 2 * LOG_INTERVAL_MS)
    assert rows.held_back == 122
    first, second = (record.getMessage() for record in caplog.records)
    assert first.startswith("2 batches")
    assert "there are 5 producers" in first
    assert "(BUCKETLOG_PRODUCERS_MAX)" in first
    assert second.startswith("120 batches")
