"""Publishes a notice at the end of each job: a message that says how it ended, and how to read its results."""

from collections.abc import Mapping
from typing import Any

from trainium_runtime.controller.actions import Publish
from trainium_runtime.controller.reading import ClientFactory
from trainium_runtime.controller.settings import ControllerSettings
from trainium_runtime.errors import ABSENT_OBJECT, CHANGED_OBJECT
from trainium_runtime.log import log
from trainium_runtime.pilot_end import utc_text
from trainium_wire.formats import json_value, moment
from trainium_wire.job import RESULTS_LOST, Job, Outcome, is_job_id
from trainium_wire.job_keys import job_keys

_LONGEST_SUBJECT = 100  # characters (SNS API reference, Publish)
_LARGEST_END = 262_144


def job_notice(job: Job, end: Mapping[str, Any], *, region: str) -> Publish:
    """The notice of the end of a job.

    Args:
        job: The job.
        end: The record of its end, which nodes write.
        region: Region of the cluster.
    """
    outcome, submitted, attempts = Outcome.from_record(end), moment(job.submitted_at), end.get("attempts")
    lines = [f"Job {job.id} of cluster {job.cluster}: {outcome.result}"]
    if submitted:
        lines.append(f"Submitted: {utc_text(submitted)}{f' by {job.submitted_by}' if job.submitted_by else ''}")
    if submitted and outcome.at:
        lines.append(f"Ended: {utc_text(outcome.at)}, {outcome.at - submitted} after its submission")
    if isinstance(attempts, int) and attempts:  # 0 in an end that trn wrote, which may not know them
        lines.append(f"Attempts: {attempts}")
    if outcome.reason:
        lines.append(f"{'Not stored' if outcome.result == RESULTS_LOST else 'Reason'}: {outcome.reason}")
    commands = [f"jobs {job.id}", f"logs {job.id}", f"cp {job.id}:outputs {job.id}"]
    lines += ["", *(f"trn {command} --cluster {job.cluster} --region {region}" for command in commands)]
    subject = f"{job.cluster}: {outcome.result}: {job.id}"
    return Publish(subject=subject[:_LONGEST_SUBJECT], message="\n".join(lines))


class JobEnds:
    """The ends of a cluster's jobs, for its topic.

    Args:
        settings: The settings of the controller.
        client: Makes the client of a service.
    """

    def __init__(self, settings: ControllerSettings, client: ClientFactory) -> None:
        self._settings, self._client = settings, client

    def publish(self, key: str, *, invocation: str) -> None:
        """Publish the notice of the end at a key, unless another invocation did.

        S3 and EventBridge can deliver an event twice. Lambda repeats a failed invocation under the same ID, which then
        publishes the notice.

        Args:
            key: Key of a new object in the folder of all jobs.
            invocation: ID of the invocation.

        Raises:
            ClientError: AWS refused a request.
            BotoCoreError: AWS was not reached.
        """
        job_id = key.split("/")[1]
        if not is_job_id(job_id) or key != job_keys(job_id).end:
            return  # The end of an attempt.
        job, end = self._read(job_keys(job_id).job), self._read(key)
        try:
            notice = job_notice(
                Job.from_json(job or b""), json_value(end or b""), region=self._settings.stack_id.split(":")[3]
            )
        except (AttributeError, ValueError) as error:
            log(ignored=key, why=str(error))
            return
        if self._is_taken(job_keys(job_id).notified, invocation):
            log(ignored=key, why="the notice was published")
            return
        topic = self._settings.job_notices
        self._client("sns").publish(TopicArn=topic, Subject=notice.subject, Message=notice.message)
        log(published=notice.subject)

    def _is_taken(self, key: str, invocation: str) -> bool:
        """Whether another invocation publishes the notice. Otherwise, this one says that it does."""
        from botocore.exceptions import ClientError

        try:
            bucket = self._settings.records_bucket
            self._client("s3").put_object(Bucket=bucket, Key=key, Body=invocation.encode(), IfNoneMatch="*")
        except ClientError as error:
            if error.response["Error"]["Code"] not in CHANGED_OBJECT:
                raise
            return self._read(key) != invocation.encode()
        return False

    def _read(self, key: str) -> bytes | None:
        from botocore.exceptions import ClientError

        bucket = self._settings.records_bucket
        try:
            return self._client("s3").get_object(Bucket=bucket, Key=key)["Body"].read(_LARGEST_END)
        except ClientError as error:
            if error.response["Error"]["Code"] in ABSENT_OBJECT:
                return None
            raise
