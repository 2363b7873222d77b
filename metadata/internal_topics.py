"""Names of Kafka's internal topics. Here, groups and transactions are not topics, but the names are
reserved: clients treat topics of these names differently.

Source: Kafka's Topic.INTERNAL_TOPICS, and ControllerApis.createTopics (`__cluster_metadata`).
"""

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
RESERVED_TOPICS = INTERNAL_TOPICS | {"__cluster_metadata"}
