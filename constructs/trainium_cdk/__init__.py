"""CDK constructs for AWS Trainium clusters. Each can be used on its own."""

from trainium_cdk.argument_types import check_argument_types
from trainium_cdk.checks import PropsError
from trainium_cdk.cluster import TrainiumCluster
from trainium_cdk.eks.eks_jobs import EksJobs
from trainium_cdk.eks.node_group import NeuronNodeGroup
from trainium_cdk.eks.node_verification import NodeVerification
from trainium_cdk.eks.pod_role import PodRole
from trainium_cdk.fleet.capacity import Capacity
from trainium_cdk.fleet.fleet_interface import INeuronFleet
from trainium_cdk.fleet.launch_template import NeuronLaunchTemplate
from trainium_cdk.fleet.neuron_fleet import NeuronFleet
from trainium_cdk.fleet.node_checks import NodeChecks
from trainium_cdk.fleet.node_image import NodeImage
from trainium_cdk.fleet.quota_check import QuotaCheck
from trainium_cdk.fleet.setup_script import SetupScript
from trainium_cdk.network.network import ClusterNetwork
from trainium_cdk.network.node_subnet import NeuronSubnet
from trainium_cdk.network.security_group import EfaSecurityGroup
from trainium_cdk.pcs.pcs_cluster import PcsCluster
from trainium_cdk.pilot.pilot_props import Budget, PilotEnd
from trainium_cdk.pilot.sleep_switch import SleepSwitch
from trainium_cdk.plan_stack import PlanStack
from trainium_cdk.sagemaker.sagemaker_training import PlannedTraining, SageMakerTraining
from trainium_cdk.storage.compile_cache import CompileCache, ICompileCache
from trainium_cdk.storage.elastic_file_system import ElasticFileSystem
from trainium_cdk.storage.lustre_file_system import LustreFileSystem
from trainium_core.plan import Plan
from trainium_core.plan.context import plan_from_cdk
from trainium_core.problems import PlanError

__all__ = [
    "Budget",
    "Capacity",
    "ClusterNetwork",
    "CompileCache",
    "EfaSecurityGroup",
    "EksJobs",
    "ElasticFileSystem",
    "ICompileCache",
    "INeuronFleet",
    "LustreFileSystem",
    "NeuronFleet",
    "NeuronLaunchTemplate",
    "NeuronNodeGroup",
    "NeuronSubnet",
    "NodeChecks",
    "NodeImage",
    "NodeVerification",
    "PcsCluster",
    "PilotEnd",
    "Plan",
    "PlanError",
    "PlanStack",
    "PlannedTraining",
    "PodRole",
    "PropsError",
    "QuotaCheck",
    "SageMakerTraining",
    "SetupScript",
    "SleepSwitch",
    "TrainiumCluster",
    "plan_from_cdk",
]

for _kind in [globals()[_name] for _name in __all__]:
    if isinstance(_kind, type) and _kind.__module__.startswith(f"{__name__}.") and _kind is not PropsError:
        check_argument_types(_kind)
