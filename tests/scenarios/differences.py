"""The differences between Apache Kafka's answers and ours that are expected, each with its reason.

`docs/differences.md` is written from this table: `python -m tests.scenarios.differences`.
"""

import re
from pathlib import Path
from typing import NamedTuple, Protocol

PAGE = Path(__file__).parents[2] / "docs" / "differences.md"


class Differing(Protocol):
    @property
    def api(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def kafka(self) -> str: ...
    @property
    def here(self) -> str: ...
    @property
    def beside(self) -> tuple[str, ...]:
        """All differences of the answer, each as its path, `=` and Kafka's value, and the names of
        the APIs of earlier requests, each after `after `."""


class Known(NamedTuple):
    """`path`, `kafka` and `here` are regular expressions for the whole text."""

    api: str
    path: str
    kafka: str
    here: str
    reason: str
    ends: bool = False
    """Whether the brokers' states may differ from there on."""
    beside: str = ""
    """Only if one of the texts of `Differing.beside` fits this regular expression."""

    def explains(self, found: Differing) -> bool:
        return (
            self.api in ("", found.api)
            and (not self.beside or any(re.fullmatch(self.beside, each) for each in found.beside))
            and self._fits(found)
        )

    def _fits(self, found: Differing) -> bool:
        return all(
            re.fullmatch(pattern, text)
            for pattern, text in (
                (self.path, found.path),
                (self.kafka, found.kafka),
                (self.here, found.here),
            )
        )


ANY = ".*"
_OURS = r"(mirror\.source|record\.validation|encryption\.key\.id)"
_PARTITION = r"\.topics\[.*\]\.partitions\[.*\]"
_GROUP = (
    "a group without members ends with its last offset, unless OffsetDelete deleted that offset; "
    "Kafka keeps the group for a while"
)
KNOWN: tuple[Known, ...] = (
    Known(
        "CreateTopics",
        rf"\.topics\[.*\]\.configs\[{_OURS}\].*",
        "None",
        ANY,
        "topics have settings that Kafka does not have: `encryption.key.id`, `mirror.source`, "
        "`record.validation`",
    ),
    Known(
        "Fetch",
        r"\.responses\[.*\]\.partitions\[.*\]\.aborted_transactions\.len",
        "0|None",
        "0|None",
        "an empty list of aborted transactions or none: clients do not read the list of an error",
    ),
    Known(
        "CreateTopics",
        r"\.topics\[.*\]\.error_code",
        ".*invalid_replication_factor.*",
        ".*none.*",
        "brokers accept any replication factor: the bucket replicates",
        ends=True,
    ),
    Known(
        "CreateTopics",
        r"\.topics\[.*\]\.error_code",
        ".*(invalid_config|invalid_replication_factor|invalid_partitions).*",
        ".*(invalid_config|invalid_replication_factor|invalid_partitions).*",
        "the topic has two errors, and bucketlog names the other one",
    ),
    Known(
        "CreateTopics",
        r"\.topics\[.*\]\.(num_partitions|replication_factor|topic_id|configs.*)",
        "-1|False|None|0",
        ANY,
        "Kafka has refused the topic for its replication factor",
    ),
    Known(
        "EndTxn",
        r"\.error_code",
        ".*invalid_txn_state.*",
        ".*none.*",
        "an abort by EndTxn 0 to 4 of a transaction without partitions succeeds: what the client "
        "had added may be lost with Redis, and the error would end the client",
    ),
    Known(
        "InitProducerId",
        r"\.producer_epoch",
        r"[2-9]|\d\d+",
        r"[1-9]\d*",
        "to end an open transaction, Kafka raises the epoch twice, and bucketlog once",
    ),
    Known(
        "DescribeTransactions",
        r"\.transaction_states\[.*\]\.topics(\.len|\[__consumer_offsets\].*)",
        ANY,
        r"\d|None",
        "committed offsets are not in a topic: a transaction with offsets has no partition of "
        "`__consumer_offsets`",
    ),
    Known(
        "OffsetCommit",
        r"\.topics\[.*\]\.partitions\[.*\]\.error_code",
        ".*unknown_member_id.*",
        ".*group_id_not_found.*",
        "a refused commit creates an empty group at Kafka's coordinator; bucketlog creates none",
        ends=True,
    ),
    Known(
        "OffsetCommit",
        r"\.topics\[.*\]\.partitions\[.*\]\.error_code",
        ".*(illegal_generation|unknown_member_id|group_id_not_found).*",
        ".*(offset_metadata_too_large|illegal_generation).*",
        "the commit has two errors, and bucketlog names the other one",
    ),
    Known(
        "IncrementalAlterConfigs",
        r"\.responses\[.*\]\.error_code",
        ".*invalid_topic_exception.*",
        ".*invalid_config.*",
        "a wrong config of a topic with an invalid name: another of both errors is named",
    ),
    *(
        Known(api, path, ANY, ANY, _GROUP, ends=True)
        for api, path in (
            ("DescribeGroups", r"\.groups\[.*\]\.(error_code|group_state)"),
            ("DeleteGroups", r"\.results\[.*\]\.error_code"),
            ("OffsetDelete", r"\.(error_code|topics.*)"),
        )
    ),
    Known(
        "ListOffsets",
        r"\.topics\[.*\]\.partitions\[.*\]\.error_code",
        ".*unsupported_version.*",
        ".*unknown_topic_or_partition.*",
        "an unknown special timestamp of an unknown partition: another of both errors is named",
    ),
    Known(
        "Produce",
        r"\.responses\[.*\]\.partition_responses\[.*\]\.error_code",
        ".*(unknown_topic_or_partition|unknown_topic_id|topic_authorization_failed).*",
        ".*(invalid_required_acks|invalid_producer_id_mapping).*",
        "the request has two errors, and bucketlog names the other one",
    ),
    Known(
        "JoinGroup",
        r"\.error_code",
        ".*unknown_member_id.*",
        ".*inconsistent_group_protocol.*",
        "an unknown member without a protocol type: two things are wrong, and the second is named",
    ),
    Known(
        "Produce",
        r"\.responses\[.*\]\.partition_responses\[.*\]\.error_code",
        ".*(transaction_abortable|invalid_txn_state).*",
        ".*(transaction_abortable|invalid_txn_state).*",
        "Kafka verifies transactions of several connections together, and uses the error code of "
        "one of their versions for all",
    ),
    Known(
        "Produce",
        r"\.responses\[.*\]\.partition_responses\[.*\]\.(error_code|base_offset|log_start_offset)",
        r".*(none|out_of_order_sequence_number|unknown_producer_id).*|\d+",
        "-1|.*(unknown_producer_id|out_of_order_sequence_number).*",
        "a producer without state begins with sequence 0; Kafka accepts any first sequence",
        ends=True,
    ),
    Known(
        "TxnOffsetCommit",
        r"\.topics\[.*\]\.partitions\[.*\]\.error_code",
        ".*(invalid_producer_id_mapping|invalid_producer_epoch|producer_fenced|invalid_txn_state).*",
        ".*(illegal_generation|unknown_member_id|group_id_not_found).*",
        "the commit has two errors, and bucketlog names the other one",
    ),
    Known(
        "IncrementalAlterConfigs",
        r"\.responses\[.*\]\.error_code",
        ".*invalid_request.*",
        ".*topic_authorization_failed.*",
        "the change is wrong, and the user may not make it: bucketlog names the second",
    ),
    Known(
        "DescribeProducers",
        rf"{_PARTITION}\.active_producers.*",
        ANY,
        "0|None",
        "a producer is listed for its records; Kafka also lists producers whose transaction has "
        "left only a marker",
        beside=rf"{_PARTITION}\.active_producers\[.*\]\.last_sequence=-1",
    ),
    Known(
        "ListOffsets",
        rf"{_PARTITION}\.(offset|timestamp)",
        r"\d+",
        "-1",
        "after DeleteRecords, Kafka may still find the time of a deleted record",
        beside="after DeleteRecords",
    ),
    Known(
        "ConsumerGroupHeartbeat",
        r"\.error_code",
        ".*group_id_not_found.*",
        ".*unknown_member_id.*",
        "groups are lost with Redis: members join again after UNKNOWN_MEMBER_ID, and end after "
        "GROUP_ID_NOT_FOUND",
    ),
    Known(
        "ConsumerGroupHeartbeat",
        r"\.assignment\.topic_partitions\.len",
        "0",
        ANY,
        "Kafka's coordinators learn of topics after Metadata shows them, and assign them later",
        ends=True,
    ),
    Known(
        "ConsumerGroupHeartbeat",
        r"\.member_epoch",
        ANY,
        ANY,
        "a member that subscribes to no topic joins right after another member has left: Kafka "
        "may then leave the other members without partitions",
        ends=True,
        beside=r"\.assignment\.topic_partitions\.len=0",
    ),
    Known(
        "ConsumerGroupHeartbeat",
        r"\.assignment.*",
        "None",
        ANY,
        "a member sees its partitions until it reports them: clients repeat a heartbeat after a "
        "lost response",
    ),
    *(
        Known(
            api,
            rf"|\.{rows}.*",
            ".*(closed|None|none|unknown_server_error).*",
            ANY,
            "values that an ACL cannot have: Kafka closes the connection, reports an internal "
            "error or finds no ACL, bucketlog refuses the request",
            ends=True,
        )
        for api, rows in (
            ("CreateAcls", "results"),
            ("DeleteAcls", "filter_results"),
            ("DescribeAcls", "(error_code|resources)"),
        )
    ),
    Known("CreateTopics", r"\.topics\[.*\]\.configs\.len", "33", "3[3-9]", "as in the first row"),
    Known(
        "CreateTopics",
        r"\.topics\[.*\]\.configs\[min\.insync\.replicas\]\.config_source",
        "3",
        "5",
        "a new cluster of Kafka 4.3.1 stores `min.insync.replicas` as a config of all brokers",
    ),
)


def page() -> str:
    """What `docs/differences.md` has to be."""
    rows = ["| API | field | Apache Kafka 4.3.1 | here | why |", "|---|---|---|---|---|"]
    for known in KNOWN:
        texts = [f"`{_cell(text)}`" for text in (known.path, known.kafka, known.here)]
        if known.beside:
            texts[0] += f" (with `{_cell(known.beside)}`)"
        rows.append(f"| {known.api or 'all'} | {' | '.join(texts)} | {known.reason} |")
    return "\n".join([_HEAD, *rows, ""])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


_HEAD = """# Differences that random requests find

`make prove WHAT=differential` sends random sequences of requests, each from a seed, to Apache
Kafka 4.3.1 and to bucketlog, and compares the answers field by field. The sequences create,
extend and delete topics, change and describe configs, produce, fetch, list offsets, delete
records, commit, read and delete offsets, describe and delete groups, and use transactions. They
name topics also by id. Members of the classic and of the consumer protocol join groups, commit and
leave. ACLs are created, described and deleted, and a user has the rights that they give. Before
the comparison, what differs by chance is left out: ids, hosts, leaders, throttle times, and the
texts of errors. Rows may be in any order.

Sequences run side by side. Each has separate names, and each sender has a connection.

Each difference must match a row of this table, whose fields are regular expressions. Any other
difference ends the proof with the seed and the fewest steps that show it.
[compatibility.md](compatibility.md) has all known differences, also those that these requests do
not reach.

<!-- table: python -m tests.scenarios.differences -->
"""

if __name__ == "__main__":
    PAGE.write_text(page())
