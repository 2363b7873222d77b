"""The limits of the console: how much a page may read and show, and how long. All are settings."""

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

MIB = 1024 * 1024


class ConsoleSettings(BaseSettings):
    """Limits of the console's pages, from `BUCKETLOG_CONSOLE_*`."""

    model_config = SettingsConfigDict(
        env_prefix="BUCKETLOG_CONSOLE_", env_ignore_empty=True, frozen=True, extra="forbid"
    )

    niceness: int = Field(
        default=10,
        ge=0,
        le=19,
        description="niceness of the process: brokers on the same machine go first",
    )
    refresh_ms: int = Field(
        default=2_000, ge=0, description="age at which a page reads the log again"
    )
    refresh_wait_ms: int = Field(
        default=250,
        ge=0,
        description="time that a page waits for a new reading before the page shows the last one. "
        "If the last reading took longer, the page does not wait",
    )
    live_interval_ms: int = Field(
        default=2_000,
        ge=100,
        description="pause between two searches of the page Messages, if live",
    )
    listing_age_ms: int = Field(
        default=10_000, ge=0, description="age at which the page Bucket lists the objects again"
    )
    cost_age_ms: int = Field(
        default=60_000, ge=0, description="age at which the page Cost reads the footers again"
    )
    lag_interval_ms: int = Field(
        default=30_000,
        ge=0,
        description="time between two samples of the groups' lag; 0: no samples",
    )
    lag_history_ms: int = Field(
        default=3_600_000, ge=1, description="age at which a sample of lag is forgotten"
    )
    lag_groups_max: int = Field(
        default=10_000, ge=0, description="groups whose lag is kept over time"
    )
    stuck_after_ms: int = Field(
        default=300_000,
        ge=1,
        description="age of a stuck partition's last commit and first unread record, at least",
    )
    page_rows_max: int = Field(default=100, ge=1, le=1_000, description="rows of a table")
    pages_in_flight_max: int = Field(
        default=4, ge=1, description="pages that are computed at the same time; others wait"
    )
    page_wait_ms_max: int = Field(
        default=5_000, ge=0, description="time that a page waits for others before error 503"
    )
    page_ms_max: int = Field(
        default=30_000, ge=1, description="time after which a page answers with an error"
    )
    read_ms_max: int = Field(
        default=300_000,
        ge=1,
        description="time of one reading of the log, of a listing or of footers, for all pages",
    )
    request_ms_max: int = Field(
        default=30_000,
        ge=1,
        description="time in which a request arrives; then its connection ends",
    )
    query_chars_max: int = Field(
        default=2_000, ge=1, description="length of a page's query, as in its address"
    )
    scan_bytes_max: int = Field(
        default=32 * MIB, ge=1, description="stored bytes that one search for records reads"
    )
    scan_records_max: int = Field(
        default=1_000_000, ge=1, description="records that one search looks at"
    )
    scan_ms_max: int = Field(default=5_000, ge=1, description="time of one search for records")
    export_records_max: int = Field(default=10_000, ge=1, description="records of an export")
    export_bytes_max: int = Field(
        default=32 * MIB,
        ge=1,
        description="size of an export: of its lines, or of its records before encoding as Parquet",
    )
    exports_in_flight_max: int = Field(
        default=2,
        ge=1,
        description="exports that are computed or sent at the same time; others wait",
    )
    export_send_ms_max: int = Field(
        default=300_000, ge=1, description="time to send an export; then its connection is closed"
    )
    batch_decompressed_bytes_max: int = Field(
        default=64 * MIB, ge=1, description="size of a batch's records after decompression"
    )
    batch_records_max: int = Field(
        default=1_000_000, ge=1, description="records of a batch; a batch with more is not read"
    )
    unreadable_batches_max: int = Field(
        default=100, ge=1, description="unreadable batches that one page describes"
    )
    preview_bytes_max: int = Field(
        default=300, ge=1, description="part of a key or a value that a table shows"
    )
    record_bytes_max: int = Field(
        default=64 * 1024, ge=1, description="part of a key, value or header that a record shows"
    )
    record_headers_max: int = Field(default=100, ge=1, description="headers that a record shows")
    json_depth_max: int = Field(
        default=50, ge=1, description="nesting up to which a value is indented as JSON"
    )
    index_reads_max: int = Field(
        default=200, ge=0, description="objects of tiers read to count a topic's records"
    )
    objects_max: int = Field(
        default=200_000, ge=1, description="objects that the pages Bucket and Cost list"
    )
    segments_drawn_max: int = Field(
        default=400, ge=1, description="segments drawn in one writer's chain"
    )
    metrics_cost: bool = Field(
        default=False,
        description="whether metrics have the cost of topics: footers are read, objects listed",
    )
    metrics_topics_max: int = Field(
        default=1_000, ge=0, description="topics that have metrics; the largest come first"
    )
    metrics_groups_max: int = Field(
        default=1_000,
        ge=0,
        description="groups that have metrics; those with the most unread records come first",
    )
    verify_interval_ms: int = Field(
        default=60_000, ge=0, description="shortest pause between two checks of the log"
    )
    verify_memory_bytes_max: int = Field(
        default=2048 * MIB, ge=1, description="address space of the process that checks the log"
    )
    verify_damage_max: int = Field(
        default=100, ge=1, description="damaged places that the page Verify shows"
    )
    replay_threads: int = Field(
        default=2, ge=1, description="threads that read and decode the records of a replay"
    )
    replay_stored_bytes_max: int = Field(
        default=4096 * MIB, ge=1, description="stored bytes that a replay of the console reads"
    )
    replay_record_bytes_max: int = Field(
        default=16384 * MIB,
        ge=1,
        description="size of the records that a replay of the console writes, before encoding",
    )
    replay_ms_max: int = Field(
        default=3_600_000, ge=1, description="time after which a replay of the console fails"
    )
    replay_memory_bytes_max: int = Field(
        default=4096 * MIB, ge=1, description="address space of the process that replays"
    )
    sql_in_flight_max: int = Field(
        default=1, ge=1, description="queries that run at the same time; others are refused"
    )
    sql_ms_max: int = Field(
        default=20_000, ge=1, description="time of one query, with the reading of its records"
    )
    sql_chars_max: int = Field(default=20_000, ge=1, description="length of the SQL of a query")
    sql_stored_bytes_max: int = Field(
        default=32 * MIB,
        ge=1,
        description="stored bytes that a query reads; its last request may read more",
    )
    sql_records_max: int = Field(default=200_000, ge=1, description="records that a query looks at")
    sql_record_bytes_max: int = Field(
        default=32 * MIB, ge=1, description="size of these records, as Arrow"
    )
    sql_rows_max: int = Field(default=200, ge=1, description="rows of a result")
    sql_columns_max: int = Field(default=50, ge=1, description="columns of a result")
    sql_cell_chars_max: int = Field(
        default=300, ge=1, description="part of a cell that a result shows, in characters"
    )
    sql_answer_bytes_max: int = Field(
        default=MIB, ge=1, description="size of a result, as JSON; rows beyond it are left out"
    )
    sql_threads: int = Field(
        default=2, ge=1, description="threads that read records, and threads of DuckDB"
    )
    sql_engine_bytes_max: int = Field(
        default=256 * MIB, ge=1, description="memory that DuckDB uses for the records and a query"
    )
    sql_memory_bytes_max: int = Field(
        default=2048 * MIB, ge=1, description="address space of the process that runs SQL"
    )
    sql_read_memory_bytes_max: int = Field(
        default=4096 * MIB, ge=1, description="address space of the process that reads records"
    )
    broker_ms_max: int = Field(
        default=5_000, ge=1, description="time that a page waits for each answer of brokers"
    )
    broker_retry_ms: int = Field(
        default=5_000,
        ge=0,
        description="time for which pages do not ask brokers that did not answer",
    )
    change_bytes_max: int = Field(
        default=MIB, ge=1, description="size of the form of a change, with a record's value"
    )
    plans_max: int = Field(
        default=100, ge=1, description="plans of changes that are kept until they are applied"
    )
    plan_age_ms_max: int = Field(
        default=600_000, ge=1, description="age at which a plan can no longer be applied"
    )
    json_search_bytes_max: int = Field(
        default=MIB, ge=1, description="size of a value that a search by JSONPath parses"
    )
    registry_request_ms_max: int = Field(
        default=2_000, ge=1, description="time to get one schema, or to decode one value"
    )
    registry_page_ms_max: int = Field(
        default=2_000, ge=0, description="time after which a page asks for no further schema"
    )
    registry_retry_ms: int = Field(
        default=10_000, ge=0, description="age at which a schema that failed is asked for again"
    )
    registry_schemas_max: int = Field(
        default=200, ge=1, description="schemas that are kept, and as many failures"
    )
    registry_answer_bytes_max: int = Field(
        default=512 * 1024,
        ge=1,
        description="size of a schema with its references, and of a decoded value",
    )
    registry_value_bytes_max: int = Field(
        default=64 * 1024, ge=1, description="size of a key or value that is decoded"
    )
    registry_memory_bytes_max: int = Field(
        default=512 * MIB,
        ge=1,
        description="address space of each of the two processes that get schemas and decode",
    )
