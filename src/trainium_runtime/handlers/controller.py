"""The controller: the function that maintains the nodes of a cluster and ends its pilot.

It is invoked for every node record, for every terminated instance of the group, on a schedule, by AWS Budgets through
SNS when the budget is spent, and by CloudFormation for the readiness of the fleet. Each event only says that it should
look at the cluster now. On another schedule, it prints the metrics of the nodes. It is also invoked for the end of each
job, if people want a notice of it.
"""

import os
import time
from datetime import UTC, datetime
from typing import Any

from trainium_runtime.controller.controller import ClusterController, object_key
from trainium_runtime.controller.job_ends import JobEnds
from trainium_runtime.controller.reading import environment_store
from trainium_runtime.controller.settings import ControllerSettings
from trainium_runtime.naming import METRICS_EVENT
from trainium_wire.keys import JOBS_PREFIX

from . import fleet_readiness


def handle(event: dict[str, Any], context: Any) -> None:
    """Look at the cluster. After an error, Lambda retries twice."""
    import boto3

    if "RequestType" in event:
        fleet_readiness.deploy(event, context)
        return
    settings = ControllerSettings.from_variables(os.environ)
    key = object_key(event)
    if key and key.startswith(f"{JOBS_PREFIX}/"):
        JobEnds(settings, boto3.client).publish(key, invocation=context.aws_request_id)
        return
    controller = ClusterController(settings, boto3.client, environment_store(settings.records_bucket))
    if METRICS_EVENT in event:
        controller.print_metrics(str(event[METRICS_EVENT]))
        return
    controller.look(event, now=datetime.fromtimestamp(time.time(), UTC))
