"""CDK constructs for AWS Trainium clusters. Each is useful alone in an app."""

from trainium_cdk.capacity import Capacity
from trainium_cdk.cluster import TrainiumCluster
from trainium_cdk.compile_cache import CompileCache, ICompileCache
from trainium_cdk.elastic_file_system import ElasticFileSystem, ExistingElasticFileSystem
from trainium_cdk.fleet import NeuronFleet
from trainium_cdk.fleet_gate import FleetGate
from trainium_cdk.fleet_interface import INeuronFleet
from trainium_cdk.hyperpod import HyperPod
from trainium_cdk.launch_template import NeuronLaunchTemplate
from trainium_cdk.lustre_file_system import ExistingLustreFileSystem, LustreFileSystem
from trainium_cdk.network import ClusterNetwork, ExistingNetwork
from trainium_cdk.node_file_system import NodeFileSystem
from trainium_cdk.node_keeper import NodeKeeper
from trainium_cdk.node_records import NodeRecords
from trainium_cdk.node_subnet import NeuronSubnet
from trainium_cdk.props_error import PropsError
from trainium_cdk.quota_gate import QuotaGate
from trainium_cdk.sagemaker_training import SageMakerTraining
from trainium_cdk.security_group import EfaSecurityGroup
from trainium_cdk.setup_script import SetupScript
from trainium_cdk.sleep_switch import SleepSwitch

__all__ = [
    "Capacity",
    "ClusterNetwork",
    "CompileCache",
    "EfaSecurityGroup",
    "ElasticFileSystem",
    "ExistingElasticFileSystem",
    "ExistingLustreFileSystem",
    "ExistingNetwork",
    "FleetGate",
    "HyperPod",
    "ICompileCache",
    "INeuronFleet",
    "LustreFileSystem",
    "NeuronFleet",
    "NeuronLaunchTemplate",
    "NeuronSubnet",
    "NodeFileSystem",
    "NodeKeeper",
    "NodeRecords",
    "PropsError",
    "QuotaGate",
    "SageMakerTraining",
    "SetupScript",
    "SleepSwitch",
    "TrainiumCluster",
]
