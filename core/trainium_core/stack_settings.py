"""The settings of the stacks beside the cluster: which stacks there are, SageMaker training and HyperPod."""

from collections.abc import Mapping

from trainium_core.facts import facts
from trainium_core.forms import Choice, Names, Pattern, WholeNumber
from trainium_core.setting import Setting, email_address

STACKS = ("cluster", "sagemaker", "hyperpod")
ORCHESTRATORS = ("slurm", "eks")

_BUCKET = "[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"
_IMAGE = r"[0-9]{12}\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com/[a-z0-9._/-]+(:[A-Za-z0-9_.-]+|@sha256:[0-9a-f]{64})"
_REGIONAL_ARN = r"arn:aws[a-z-]*:{service}:[a-z0-9-]+:[0-9]{{12}}:{resource}"


def _arn(service: str, resource: str, what: str) -> Pattern:
    return Pattern(_REGIONAL_ARN.format(service=service, resource=resource), what)


def _settings() -> Mapping[str, Setting]:
    hyperpod = facts()["hyperpod"]
    return {
        "stacks": Setting(
            form=Names(STACKS),
            default="cluster; a stack that is named to the CDK CLI is there in any case",
            meaning="stacks of the app: TrnClusterStack, SageMakerTrainingStack, HyperPodStack",
        ),
        "sagemaker_vpc": Setting(
            form=Choice(("on", "off")),
            default="off (SageMaker's own network, with internet)",
            meaning="whether training jobs run in a VPC: the one of trn:vpc_id, else a new one",
        ),
        "sagemaker_image": Setting(
            form=Pattern(_IMAGE, "the URI of an image in ECR, with a tag or a digest"),
            default="AWS's last image for PyTorch on Neuron",
            meaning="container image of your own that training jobs may use in place of AWS's",
        ),
        "sagemaker_data": Setting(
            form=Pattern(rf"s3://{_BUCKET}(/[A-Za-z0-9._/=-]*)?", "an S3 URL, such as s3://bucket/folder"),
            default="none",
            meaning="training data of your own that jobs may read, besides what the stack holds",
        ),
        "sagemaker_budget_hours": Setting(
            form=WholeNumber(1),
            default="24",
            meaning="hours after which the state machine stops a training job, whatever the job asks for",
        ),
        "sagemaker_capacity_retries": Setting(
            form=WholeNumber(0, 20),
            default="5",
            meaning="times the state machine tries again without capacity or quota, after 5, 10, 20 ... minutes",
        ),
        "sagemaker_report_email": Setting(
            form=email_address(),
            default="none: subscribe to the topic in the stack's outputs",
            meaning="where SNS reports the end of a run and every failed job; the address must confirm once",
        ),
        "sagemaker_kms_key": Setting(
            form=_arn("kms", "key/[A-Za-z0-9-]+", "the ARN of a KMS key"),
            default="none: encrypted with keys of S3's own",
            meaning="key of your own for source, checkpoints, output and a new compile cache; its policy must let the "
            "account use it",
        ),
        "sagemaker_output_at_destroy": Setting(
            form=Choice(("destroy", "retain")),
            default="destroy",
            meaning="what happens to source, checkpoints and trained models at destroy",
        ),
        "hyperpod_orchestrator": Setting(
            form=Choice(ORCHESTRATORS), default="slurm", meaning="what schedules jobs on the HyperPod cluster"
        ),
        "hyperpod_eks_cluster": Setting(
            form=_arn("eks", "cluster/[A-Za-z0-9_-]+", "the ARN of an EKS cluster"),
            default="none",
            meaning="EKS cluster that orchestrates; it must be prepared for HyperPod already",
        ),
        "hyperpod_controller_type": Setting(
            form=Choice(tuple(hyperpod["controller_types"])),
            default=hyperpod["controller_types"][0],
            meaning="instance type of the Slurm controller",
        ),
        "hyperpod_training_plan": Setting(
            form=_arn("sagemaker", "training-plan/.+", "the ARN of a SageMaker training plan"),
            default="none: on demand",
            meaning="training plan that the HyperPod nodes are taken from; bought for hyperpod-cluster",
        ),
        "hyperpod_deep_health_checks": Setting(
            form=Choice(("on", "off")),
            default="on",
            meaning="whether SageMaker stresses and connects new nodes before they are used",
        ),
    }


STACK_SETTINGS: Mapping[str, Setting] = _settings()
