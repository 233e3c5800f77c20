"""SageMakerTrainingStack: network, image, data, encryption, limits and reports of training jobs."""

from trainium_core.setting_schema.forms import Choice, Pattern, Switch, WholeNumber
from trainium_core.setting_schema.setting import (
    AT_DESTROY,
    BUCKET_NAME,
    AtDestroy,
    email_address,
    regional_arn,
    section,
    setting,
)

_IMAGE = r"[0-9]{12}\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com/[a-z0-9._/-]+(:[A-Za-z0-9_.-]+|@sha256:[0-9a-f]{64})"


@section
class SageMakerSettings:
    """Settings of SageMakerTrainingStack. `image` is a URI, `data` an S3 URL, `kms_key` an ARN."""

    vpc: bool = setting(
        "sagemaker_vpc",
        Switch(),
        default=False,
        default_text="{} (SageMaker's own network, with internet)",
        meaning="whether training jobs run in a VPC: trn:vpc_id, else a new VPC",
    )
    image: str | None = setting(
        "sagemaker_image",
        Pattern(_IMAGE, "the URI of an image in ECR, with a tag or a digest"),
        default=None,
        default_text="AWS's latest image for PyTorch on Neuron",
        meaning="container image of training jobs",
    )
    data: str | None = setting(
        "sagemaker_data",
        Pattern(rf"s3://{BUCKET_NAME}(/[A-Za-z0-9._/=-]*)?", "an S3 URL, such as s3://bucket/folder"),
        default=None,
        meaning="training data that jobs may read, in addition to the stack's bucket",
    )
    max_runtime_hours: int = setting(
        "sagemaker_max_runtime_hours",
        WholeNumber(1),
        default=24,
        meaning="maximum run time of a training job in hours, and the default time limit of `trn run`",
    )
    max_instances: int | None = setting(
        "sagemaker_max_instances",
        WholeNumber(1),
        default=None,
        default_text="trn:nodes, so that one job runs at a time",
        meaning="maximum number of instances that the jobs of the queue use at the same time; other jobs wait",
    )
    report_email: str | None = setting(
        "sagemaker_report_email",
        email_address(),
        default=None,
        default_text="none: subscribe to the topic in the stack's outputs",
        meaning="e-mail address for a message about the end of each job; its owner must confirm the subscription",
    )
    kms_key: str | None = setting(
        "sagemaker_kms_key",
        regional_arn("kms", "key/[A-Za-z0-9-]+", "the ARN of a KMS key"),
        default=None,
        default_text="none: encryption with S3-managed keys",
        meaning="KMS key for source, checkpoints, output and a new compile cache; the key policy must allow the "
        "account to use the key",
    )
    output_at_destroy: AtDestroy = setting(
        "sagemaker_output_at_destroy",
        Choice(AT_DESTROY),
        default="destroy",
        meaning="what happens to source, checkpoints and trained models at destroy",
    )
