"""CDK constructs for AWS Trainium clusters. Each is useful alone in an app."""

from trainium_cdk.capacity import Capacity
from trainium_cdk.checks import PropsError
from trainium_cdk.cluster import TrainiumCluster
from trainium_cdk.compile_cache import CompileCache, ICompileCache
from trainium_cdk.elastic_file_system import ElasticFileSystem
from trainium_cdk.fleet_interface import INeuronFleet
from trainium_cdk.hyperpod import HyperPod
from trainium_cdk.launch_template import NeuronLaunchTemplate
from trainium_cdk.lustre_file_system import LustreFileSystem
from trainium_cdk.network import ClusterNetwork
from trainium_cdk.neuron_fleet import NeuronFleet
from trainium_cdk.node_subnet import NeuronSubnet
from trainium_cdk.quota_check import QuotaCheck
from trainium_cdk.sagemaker_training import SageMakerTraining
from trainium_cdk.security_group import EfaSecurityGroup
from trainium_cdk.setup_script import SetupScript
from trainium_cdk.sleep_switch import SleepSwitch
from trainium_core.plan import Plan

__all__ = [
    "Capacity",
    "ClusterNetwork",
    "CompileCache",
    "EfaSecurityGroup",
    "ElasticFileSystem",
    "HyperPod",
    "ICompileCache",
    "INeuronFleet",
    "LustreFileSystem",
    "NeuronFleet",
    "NeuronLaunchTemplate",
    "NeuronSubnet",
    "Plan",
    "PropsError",
    "QuotaCheck",
    "SageMakerTraining",
    "SetupScript",
    "SleepSwitch",
    "TrainiumCluster",
]
