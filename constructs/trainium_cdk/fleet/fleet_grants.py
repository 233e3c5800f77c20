"""Permissions of people and pipelines that use `trn` on a fleet."""

from collections.abc import Sequence
from functools import reduce
from typing import Any

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import IConstruct

from trainium_cdk.fleet.group_arn import group_arn
from trainium_cdk.grants import granting, warn_about_unchanged_policies
from trainium_cdk.storage.disposable_bucket import named_bucket_arn
from trainium_core.permissions.roles import action as action_of
from trainium_core.permissions.roles import commands
from trainium_wire.job_keys import INPUTS_PREFIX, SUBMITTED_PREFIX
from trainium_wire.keys import CURRENT_JOB_KEY, JOBS_PREFIX, MEMBERSHIP_KEY
from trainium_wire.stack_record import RECORDS_PATH

_RUNNING = (("operate", "run, stop, cp"), ("read-only", "jobs, logs"))
_OPERATING = (*_RUNNING, ("operate", "sleep, wake"), ("read-only", "nodes"), ("read-only", "list, status"))
"""What `grant_run_jobs` and `grant_operate` allow: roles and their entries in permissions.toml."""

_FINDING = ("autoscaling", "cloudformation", "ec2", "pricing", "tag")


def grant_run_jobs(fleet: IConstruct, grantee: iam.IGrantable, bucket: s3.IBucket) -> iam.Grant:
    """Grant the permissions of `trn run`, `stop`, `cp`, `jobs` and `logs`.

    Args:
        bucket: The cluster's bucket.

    Raises:
        PropsError: The CDK cannot grant permissions to the grantee.
    """
    with granting(fleet, grantee):
        granted = [
            *_on_bucket(fleet, grantee, bucket),
            _granted(grantee, _finding_actions(_RUNNING), "*"),
            _on_stack_records(fleet, grantee),
        ]
    return reduce(iam.Grant.combine, granted)


def grant_operate(
    fleet: IConstruct,
    grantee: iam.IGrantable,
    bucket: s3.IBucket,
    *,
    group_name: str,
    sleep_function_name: str | None,
    pilot_topic_arn: str | None,
) -> iam.Grant:
    """Grant the permissions of `trn nodes`, `list`, `status`, `sleep` and `wake`, and those of grant_run_jobs().

    Args:
        bucket: The cluster's bucket.
        sleep_function_name: Function that sets the stack's parameter `Asleep`. None: the cluster cannot sleep.
        pilot_topic_arn: Topic of the pilot. None: the fleet has no pilot.

    Raises:
        PropsError: The CDK cannot grant permissions to the grantee.
    """
    with granting(fleet, grantee):
        granted = [
            *_on_bucket(fleet, grantee, bucket),
            # A notice to jobs of the end of their nodes.
            _granted(grantee, ["s3:PutObject"], named_bucket_arn(bucket, MEMBERSHIP_KEY)),
            _granted(grantee, _finding_actions(_OPERATING), "*"),
            _on_stack_records(fleet, grantee),
            _granted(grantee, ["autoscaling:UpdateAutoScalingGroup"], group_arn(fleet, group_name)),
        ]
        if sleep_function_name is not None:
            function = Stack.of(fleet).format_arn(
                service="lambda",
                resource="function",
                resource_name=sleep_function_name,
                arn_format=ArnFormat.COLON_RESOURCE_NAME,
            )
            granted.append(_granted(grantee, ["lambda:InvokeFunction"], function))
        if pilot_topic_arn is not None:
            granted.append(_granted(grantee, ["sns:ListTagsForResource"], pilot_topic_arn))
    return reduce(iam.Grant.combine, granted)


def _on_bucket(fleet: IConstruct, grantee: iam.IGrantable, bucket: s3.IBucket) -> Sequence[iam.Grant]:
    """Grant permission to submit and stop jobs, and to read all objects, with the key of the bucket."""
    resource: Any = bucket  # in jsii a parameter has another name than in the interface
    folders = (JOBS_PREFIX, INPUTS_PREFIX, SUBMITTED_PREFIX)
    submitted = [named_bucket_arn(bucket, key) for key in (*(f"{folder}/*" for folder in folders), CURRENT_JOB_KEY)]
    grants = [
        iam.Grant.add_to_principal_or_resource(grantee=grantee, actions=[action], resource=resource, resource_arns=arns)
        for action, arns in (
            ("s3:ListBucket", [named_bucket_arn(bucket)]),
            ("s3:GetObject", [named_bucket_arn(bucket, "*")]),
            ("s3:PutObject", submitted),
        )
    ]
    warn_about_unchanged_policies(fleet, grants[0], bucket)
    key = bucket.encryption_key
    return [*grants, *([] if key is None else [key.grant_encrypt_decrypt(grantee)])]


def _on_stack_records(fleet: IConstruct, grantee: iam.IGrantable) -> iam.Grant:
    """Grant permission to read the records of all stacks, which contain settings and names."""
    all_records = Stack.of(fleet).format_arn(service="ssm", resource=f"parameter{RECORDS_PATH}")
    return _granted(grantee, ["ssm:GetParametersByPath"], all_records, f"{all_records}/*")


def _finding_actions(entries: Sequence[tuple[str, str]]) -> Sequence[str]:
    """Read-only actions by which commands find a cluster, its nodes and prices. They are allowed on all resources."""
    needed = {name for role, entry in entries for name in commands(role)[entry]}
    finding = (name for name in needed if name.partition(":")[0] in _FINDING)
    return sorted(name for name in finding if action_of(name).access in ("Read", "List"))


def _granted(grantee: iam.IGrantable, actions: Sequence[str], *resources: str) -> iam.Grant:
    return iam.Grant.add_to_principal(grantee=grantee, actions=list(actions), resource_arns=list(resources))
