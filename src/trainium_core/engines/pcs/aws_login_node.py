"""Runs commands on the login node of an AWS PCS cluster with Systems Manager Run Command."""

import time
from collections.abc import Callable

from botocore.exceptions import ConnectionClosedError, ReadTimeoutError

from trainium_core.jobs.aws_scheduled_jobs import NoAnswerError
from trainium_runtime.aws_errors import read_errors, write_errors
from trainium_runtime.aws_service import AwsService, is_aws
from trainium_runtime.errors import RequestRefusedError, UnavailableError
from trainium_runtime.naming import CLUSTER_TAG

_DOCUMENT = "AWS-RunShellScript"
_SECONDS, _POLL_SECONDS = 60, 0.5
_UNFINISHED = ("Pending", "InProgress", "Delayed", "Cancelling")
_NOT_YET = "InvocationDoesNotExist"
"""The error of GetCommandInvocation for a moment after SendCommand."""


class CommandFailedError(RequestRefusedError):
    """A command ended with an exit code other than 0. The message is its standard error, or else its output."""


class AwsLoginNode:
    """The login node of a cluster.

    Args:
        account: The account and region of the cluster.
        cluster: The name of the cluster.
        pause: Waits for a number of seconds. Default: time.sleep.
    """

    def __init__(self, account: AwsService, cluster: str, *, pause: Callable[[float], None] = time.sleep) -> None:
        self._account, self._pause = account, pause
        self._tags = {CLUSTER_TAG: cluster, "Name": f"{cluster}-login"}

    @property
    def is_on_aws(self) -> bool:
        return is_aws(self._account.client("ssm").meta.endpoint_url)

    def run(self, command: str) -> str:
        """The standard output of a bash command, which runs as root for at most 60 seconds.

        Raises:
            CommandFailedError: The command failed.
            NoAnswerError: The command may have been sent, and its result is unknown, for example after a timeout.
            RequestRefusedError: Systems Manager refused to send the command.
            UnavailableError: There is no running login node, or a request failed or was denied.
        """
        instance = self.find()
        try:
            with write_errors("ssm:SendCommand"):
                sent = self._account.client("ssm").send_command(
                    InstanceIds=[instance],
                    DocumentName=_DOCUMENT,
                    TimeoutSeconds=_SECONDS,
                    Parameters={"commands": ["#!/bin/bash", command], "executionTimeout": [str(_SECONDS)]},
                )
        except RequestRefusedError as error:
            if isinstance(error.__cause__, ReadTimeoutError | ConnectionClosedError):
                raise NoAnswerError(str(error)) from error
            raise
        return self._result(instance, sent["Command"]["CommandId"])

    def _result(self, instance: str, command_id: str) -> str:
        client = self._account.client("ssm")
        for _ in range(int(2 * _SECONDS / _POLL_SECONDS)):
            self._pause(_POLL_SECONDS)
            try:
                with read_errors("ssm:GetCommandInvocation", absent=(_NOT_YET,)):
                    answer = client.get_command_invocation(CommandId=command_id, InstanceId=instance)
                    if answer["Status"] in _UNFINISHED:
                        continue
                    if answer["Status"] == "Success":
                        return answer["StandardOutputContent"]
                    text = answer["StandardErrorContent"].strip() or answer["StandardOutputContent"].strip()
                    # TimedOut or Cancelled, for example: parts of the command may have run.
                    if answer["Status"] != "Failed":
                        ended = f"the command on the login node {instance} ended with {answer['Status']}"
                        raise NoAnswerError(f"{ended}: {text}" if text else ended)
                    raise CommandFailedError(text or "the command on the login node failed without a message")
            except UnavailableError as error:
                raise NoAnswerError(str(error)) from error
        raise NoAnswerError(f"the login node {instance} did not answer within {2 * _SECONDS} seconds")

    def find(self) -> str:
        """The instance ID of the login node.

        Raises:
            UnavailableError: The login node is not running, or a request failed or was denied.
        """
        instance = self.running()
        if instance is None:
            raise UnavailableError(
                "the login node is not running: AWS PCS starts it within minutes, unless its setup fails"
            )
        return instance

    def running(self) -> str | None:
        """The instance ID of the login node; None if it is not running.

        Raises:
            UnavailableError: A request failed or was denied.
        """
        filters = [
            *({"Name": f"tag:{key}", "Values": [value]} for key, value in self._tags.items()),
            {"Name": "instance-state-name", "Values": ["running"]},
        ]
        with read_errors("ec2:DescribeInstances"):
            pages = self._account.client("ec2").get_paginator("describe_instances").paginate(Filters=filters)
            return next((instance["InstanceId"] for instance in pages.search("Reservations[].Instances[]")), None)
        return None
