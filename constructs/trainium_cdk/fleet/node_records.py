"""The bucket where nodes write their records and read the membership."""

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from trainium_cdk.cdk_types import Key
from trainium_cdk.handler_function import HandlerFunction
from trainium_cdk.justification import justify_wildcard, justify_wildcards
from trainium_cdk.service_role import allow
from trainium_cdk.storage.disposable_bucket import DisposableBucket, allow_objects, named_bucket_arn
from trainium_wire.job_keys import INPUTS_PREFIX, JOB_FOLDERS_OF_NODES, SUBMITTED_PREFIX, job_keys
from trainium_wire.keys import (
    CURRENT_JOB_KEY,
    INTERNODE_PREFIX,
    JOBS_PREFIX,
    LOGS_PREFIX,
    MEMBERSHIP_KEY,
    RECORDS_PREFIX,
    SSH_KEYS_PREFIX,
    USAGE_PREFIX,
)

_LOGS_KEPT = Duration.days(30)
_JOBS_KEPT = Duration.days(90)
_PARTS_KEPT = Duration.days(7)  # Longer than the upload of any file.


class NodeRecords(Construct):
    """The cluster's bucket: node records, logs, membership and jobs. `url` is the folder of the records.

    Nodes in a closed network reach S3 over the gateway endpoint, but not CloudFormation. EventBridge gets an event for
    every object.
    """

    bucket: s3.Bucket
    key_arn: str | None
    url: str

    def __init__(self, scope: Construct, construct_id: str, *, encryption_key: Key | None = None) -> None:
        """
        Args:
            encryption_key: KMS key of the objects, included in grants. Default: keys that S3 manages (SSE-S3).
        """
        super().__init__(scope, construct_id)
        self.key_arn = None if encryption_key is None else encryption_key.key_arn
        rules = [
            s3.LifecycleRule(id="logs", prefix=f"{LOGS_PREFIX}/", expiration=_LOGS_KEPT),
            *(
                s3.LifecycleRule(
                    id=name,
                    prefix=f"{prefix}/",
                    expiration=_JOBS_KEPT,
                    abort_incomplete_multipart_upload_after=_PARTS_KEPT,
                )
                for name, prefix in (("jobs", JOBS_PREFIX), ("inputs", INPUTS_PREFIX), ("submitted", SUBMITTED_PREFIX))
            ),
        ]
        self.bucket = DisposableBucket(
            self,
            "Store",
            purpose="records",
            lifecycle_rules=rules,
            sends_events=True,
            encryption_key=encryption_key,
        ).bucket
        self.prefix = RECORDS_PREFIX
        self.url = f"s3://{self.bucket.bucket_name}/{RECORDS_PREFIX}"

    def grant_node(self, role: iam.IRole, *, internode_ssh: bool = False, internode_tests: bool = False) -> None:
        """Allow the nodes' role to write records, logs and usage, to read the membership, and to run jobs.

        The role cannot read records.

        With a role of this app, a node cannot write the record, log, usage report or SSH key of another node: the names
        of these objects contain `aws:userid`, which is `<role ID>:<instance ID>`. With an imported role, whose ID is
        not known, it can. Every node can write the results of jobs and of the test over all nodes.

        Args:
            role: The nodes' role.
            internode_ssh: Whether nodes exchange public keys. Default: False.
            internode_tests: Whether nodes coordinate a test over all nodes. Default: False.
        """
        write, both = ["s3:PutObject"], ["s3:PutObject", "s3:GetObject"]
        own = {RECORDS_PREFIX: "json", LOGS_PREFIX: "log", USAGE_PREFIX: "json"}
        own |= {SSH_KEYS_PREFIX: "json"} if internode_ssh else {}
        if role_unique_id(role):
            names = [
                named_bucket_arn(self.bucket, f"{prefix}/${{aws:userid}}.{suffix}") for prefix, suffix in own.items()
            ]
            allow(role, write, names)
            own = {}
        allow_objects(
            self.bucket,
            role,
            {**dict.fromkeys(own, write), **({INTERNODE_PREFIX: both} if internode_tests else {})},
        )
        if internode_ssh:
            allow_objects(self.bucket, role, {SSH_KEYS_PREFIX: ["s3:GetObject"]})
        allow(role, ["s3:GetObject"], [self.membership_arn, named_bucket_arn(self.bucket, CURRENT_JOB_KEY)])
        self.grant_jobs(role)

    def grant_jobs(self, role: iam.IRole) -> None:
        """Allow a role to run jobs. It can write the results of every job.

        Args:
            role: The role of nodes or pods.
        """
        write = ["s3:PutObject"]
        allow_objects(
            self.bucket,
            role,
            {
                JOBS_PREFIX: ["s3:GetObject"],
                INPUTS_PREFIX: ["s3:GetObject"],
                # Only operators write what is submitted: the job, its source, its inputs and the request to stop it.
                **{f"{JOBS_PREFIX}/*/{folder}": write for folder in JOB_FOLDERS_OF_NODES},
            },
        )
        ends = named_bucket_arn(self.bucket, job_keys("*").end)
        justify_wildcards(role, {ends: "one object for each job; job IDs are not known at synthesis"}, of=self.bucket)
        allow(role, write, [ends])
        # Without this permission, S3 answers 403 instead of 404 for an object that does not exist yet.
        allow(role, ["s3:ListBucket"], [named_bucket_arn(self.bucket)])
        if self.bucket.encryption_key is not None:
            self.bucket.encryption_key.grant_encrypt_decrypt(role)

    def allow_key(self, function: HandlerFunction, *, writing: bool = False) -> None:
        """Allow a function of this package to use the key, if there is one.

        Args:
            writing: Whether the function writes objects. Default: False.
        """
        if self.key_arn is not None:
            actions = ["kms:Decrypt", *(["kms:GenerateDataKey"] if writing else [])]
            function.allow(actions=actions, resources=[self.key_arn])

    @property
    def membership_arn(self) -> str:
        """ARN of the object with the membership."""
        return named_bucket_arn(self.bucket, MEMBERSHIP_KEY)


def role_unique_id(role: iam.IRole) -> str | None:
    """The ID of a role, which is part of the names of its nodes' objects; None for an imported role."""
    return role.role_id if isinstance(role, iam.Role) else None


def allow_reading_records(function: HandlerFunction, records: NodeRecords) -> None:
    """Allow a function of this package to read all records."""
    allow_reading_records_in(function, records.bucket)
    records.allow_key(function)


def allow_reading_records_in(function: HandlerFunction, bucket: s3.IBucket) -> None:
    """Allow a function of this package to read all records in a bucket without a KMS key of the app."""
    function.allow(actions=["s3:ListBucket"], resources=[named_bucket_arn(bucket)])
    objects = named_bucket_arn(bucket, f"{RECORDS_PREFIX}/*")
    function.allow(actions=["s3:GetObject"], resources=[objects])
    justify_wildcard(function, objects, "one record for each instance; instance IDs are not known at synthesis")


def allow_reading_usage(function: HandlerFunction, records: NodeRecords) -> None:
    """Allow a function of this package to read the usage reports of the nodes."""
    function.allow(actions=["s3:ListBucket"], resources=[named_bucket_arn(records.bucket)])
    reports = named_bucket_arn(records.bucket, f"{USAGE_PREFIX}/*")
    function.allow(actions=["s3:GetObject"], resources=[reports])
    justify_wildcard(function, reports, "one report for each instance; instance IDs are not known at synthesis")
    records.allow_key(function)


def allow_reading_last_job(function: HandlerFunction, records: NodeRecords) -> None:
    """Allow a function of this package to read whether a job is running."""
    ends = named_bucket_arn(records.bucket, job_keys("*").end)
    function.allow(actions=["s3:GetObject"], resources=[ends, named_bucket_arn(records.bucket, CURRENT_JOB_KEY)])
    justify_wildcard(function, ends, "one object for each job; job IDs are not known at synthesis")
