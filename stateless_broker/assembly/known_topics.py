"""The topics of the view, as groups of the consumer protocol read them."""

from bucketlog.consumers.modern_messages import FoundTopic
from bucketlog.log_format.model import TopicId
from bucketlog.metadata.view import View


class ViewTopics:
    def __init__(self, view: View) -> None:
        self._view = view

    @property
    def version(self) -> int:
        return self._view.topics_version

    def find(self, name: str) -> FoundTopic | None:
        topic = self._view.topic(name)
        return None if topic is None else FoundTopic(topic.topic_id, topic.partitions)

    def name(self, topic_id: TopicId) -> str | None:
        return self._view.topic_name(topic_id)

    def names(self) -> list[str]:
        return [topic.name for topic in self._view.topics()]
