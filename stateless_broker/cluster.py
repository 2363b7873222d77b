"""Who the cluster is, as clients are told: brokers, controller, leaders."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Node:
    """A broker as clients reach it."""

    node_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Cluster:
    """One broker: it leads every partition, coordinates everything and is the controller."""

    cluster_id: str
    me: Node

    @property
    def nodes(self) -> tuple[Node, ...]:
        return (self.me,)

    @property
    def controller(self) -> Node:
        return self.me

    def leader(self, topic_id: bytes, partition: int) -> Node:
        return self.me
