"""What the jobs of `trn run` may access in addition to the cluster's bucket."""

from trainium_core.setting_schema.forms import ListOf, Pattern
from trainium_core.setting_schema.setting import BUCKET_NAME, section, setting

S3_FOLDER = rf"s3://{BUCKET_NAME}(/[A-Za-z0-9!_.'()=-]+)+/?"
"""Regular expression of the URL of a folder in a bucket, without characters that a URL must escape.

A whole bucket does not match.
"""

SECRET_ARN = (
    r"arn:aws[a-z-]*:(secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[\w/+=.@-]+-[A-Za-z0-9]{6}"
    r"|ssm:[a-z0-9-]+:[0-9]{12}:parameter/[\w./-]+)"
)
"""Regular expression of the ARN of a Secrets Manager secret or a Systems Manager parameter."""

_FOLDERS = ListOf(
    Pattern(S3_FOLDER, "a folder in S3, such as s3://my-data/tokens"),
    "folders in S3, such as s3://my-data/tokens, as a list or separated by commas",
)
_SECRETS = ListOf(
    Pattern(SECRET_ARN, "the ARN of a secret or of a parameter"),
    "ARNs of Secrets Manager secrets and Systems Manager parameters, as a list or separated by commas",
)


@section
class JobAccess:
    """Access of the nodes' role for jobs. A job with other inputs or secrets is refused before it starts."""

    inputs: tuple[str, ...] = setting(
        "job_inputs",
        _FOLDERS,
        default=(),
        default_text="none: only uploads from your machine",
        meaning="S3 folders in the plan's region that nodes may read as inputs of jobs",
    )
    checkpoints: str | None = setting(
        "job_checkpoints",
        Pattern(S3_FOLDER, "a folder in S3, such as s3://my-models/checkpoints"),
        default=None,
        default_text="the cluster's bucket, which is deleted with the cluster",
        meaning="S3 folder in the plan's region for checkpoints of jobs; it outlives the cluster, and nodes may read "
        "and write it",
    )
    secrets: tuple[str, ...] = setting(
        "job_secrets",
        _SECRETS,
        default=(),
        default_text="none",
        meaning="secrets and parameters that nodes may read for the environment of jobs",
    )
