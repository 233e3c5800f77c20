"""EksJobsStack: the EKS cluster of jobs, their namespace, service account, image and way to devices."""

from typing import Literal, get_args

from trainium_core.catalog.instance_type import InstanceType
from trainium_core.setting_schema.forms import Choice, Pattern
from trainium_core.setting_schema.setting import section, setting

DeviceSource = Literal["plugin", "claim"]
DEVICE_SOURCES: tuple[DeviceSource, ...] = get_args(DeviceSource)
_LABEL = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_LABEL_FORM = "1 to 63 lower-case letters, digits and hyphens, a letter or digit first and last"
_CLAIM_TYPES = ("trn2.48xlarge",)
"""Types for which AWS Neuron documents the DRA driver (AWS Neuron documentation 2.33, deploy/eks/dra)."""


@section
class EksSettings:
    """Settings of EksJobsStack. The nodes are those of a NeuronNodeGroup whose `cluster_name` is trn:cluster_name."""

    cluster: str | None = setting(
        "eks_cluster",
        Pattern("[A-Za-z0-9][A-Za-z0-9_-]{0,99}", "the name of an EKS cluster"),
        default=None,
        meaning="existing EKS cluster that runs jobs",
    )
    namespace: str = setting(
        "eks_namespace",
        Pattern(_LABEL, _LABEL_FORM),
        default="default",
        meaning="existing Kubernetes namespace of jobs",
    )
    service_account: str = setting(
        "eks_service_account",
        Pattern(_LABEL, _LABEL_FORM),
        default="trn-job",
        meaning="existing Kubernetes service account of jobs, which gets a role by EKS Pod Identity",
    )
    image: str | None = setting(
        "eks_image",
        Pattern(r"[A-Za-z0-9][A-Za-z0-9._/:@-]*(:[A-Za-z0-9_.-]+|@sha256:[0-9a-f]{64})", "an image with tag or digest"),
        default=None,
        default_text="AWS's latest image for PyTorch on Neuron",
        meaning="container image of jobs, with Python 3.8 or later",
    )
    devices: DeviceSource | None = setting(
        "eks_devices",
        Choice(DEVICE_SOURCES),
        default=None,
        default_text=f"claim on {', '.join(_CLAIM_TYPES)}, else plugin",
        meaning="how pods get Neuron and EFA devices: from device plugins, or by a claim from DRA drivers",
    )

    def claims_devices(self, instance_type: InstanceType) -> bool:
        """Whether pods on nodes of this type get their devices by a claim."""
        chosen = self.devices or ("claim" if instance_type.name in _CLAIM_TYPES else "plugin")
        return chosen == "claim"
