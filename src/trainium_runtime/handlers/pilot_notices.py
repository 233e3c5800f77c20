"""Notices to people through the SNS topic of a pilot, and the state of the pilot's clock, in the tags of the topic."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from trainium_runtime.naming import IDLE_NOTICE_TAG, NOTIFIED_TAG, SPENT_TAG, STOPPED_TAG
from trainium_runtime.pilot_clock import Memory, SpentBudget
from trainium_runtime.pilot_end import utc_text
from trainium_runtime.tags import tag_values

_LONGEST_SUBJECT = 100  # characters (SNS API reference, Publish)


class PilotNotices:
    """The topic of a pilot.

    Attributes:
        memory: The state in the tags of the topic, read when this object was created.
        error: Why the tags could not be read; None if they were. With an error, earlier notices are unknown, and
            `publish_once` and `publish_idle` do nothing.
    """

    def __init__(self, sns: Any, settings: Mapping[str, str]) -> None:
        self._sns, self._topic = sns, settings["TOPIC"]
        self._cluster, self._stack_id = settings["CLUSTER"], settings["STACK_ID"]
        self.memory, self.error = self._recall()

    def _recall(self) -> tuple[Memory, Exception | None]:
        try:
            tags = tag_values(self._sns.list_tags_for_resource(ResourceArn=self._topic)["Tags"])
            spent = SpentBudget.from_text(tags[SPENT_TAG]) if SPENT_TAG in tags else None
            idle = datetime.fromisoformat(tags[IDLE_NOTICE_TAG]) if IDLE_NOTICE_TAG in tags else None
        except Exception as error:  # nodes stop at the end even without the stored state
            return Memory(), error
        return Memory(notified=tags.get(NOTIFIED_TAG), stopped=tags.get(STOPPED_TAG), spent=spent, idle=idle), None

    def publish(self, subject: str, *sentences: str) -> None:
        self._sns.publish(
            TopicArn=self._topic,
            Subject=f"{self._cluster} {subject}"[:_LONGEST_SUBJECT],
            Message="\n".join([*sentences, "", f"Cluster {self._cluster}, stack {self._stack_id}"]),
        )

    def publish_once(self, event: str, subject: str, *sentences: str) -> None:
        """Publish a message, unless the last one published by this method was for the same event.

        Args:
            event: Identifies the event.
        """
        if self.memory.notified != event and not self.error:
            self.publish(subject, *sentences)
            self._remember(NOTIFIED_TAG, event)

    def publish_idle(self, stop: datetime, subject: str, *sentences: str) -> None:
        """Publish a message about unused nodes, and store when they will stop, separately from notices about the end.

        Args:
            stop: When the nodes will stop.
        """
        if not self.error:
            self.publish(subject, *sentences)
            self._remember(IDLE_NOTICE_TAG, utc_text(stop))

    def remember_stop(self, stopped: str) -> None:
        if self.memory.stopped != stopped:
            self._remember(STOPPED_TAG, stopped)

    def remember_spent(self, spent: SpentBudget | None) -> None:
        """Store the spent budget, or remove it if none is spent."""
        if spent == self.memory.spent:
            return
        if spent:
            self._remember(SPENT_TAG, str(spent))
        else:
            self._sns.untag_resource(ResourceArn=self._topic, TagKeys=[SPENT_TAG])

    def forget_stop(self) -> None:
        if self.memory.stopped is not None:
            self._sns.untag_resource(ResourceArn=self._topic, TagKeys=[STOPPED_TAG])

    def _remember(self, key: str, value: str) -> None:
        self._sns.tag_resource(ResourceArn=self._topic, Tags=[{"Key": key, "Value": value}])
