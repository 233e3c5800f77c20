"""CDK constructs for AWS Trainium clusters. Each is useful alone in an app of your own."""

from trainium_cdk.cluster import TrainiumCluster
from trainium_cdk.compile_cache import CompileCache
from trainium_cdk.fleet import NeuronFleet
from trainium_cdk.fleet_gate import FleetGate
from trainium_cdk.launch_template import NeuronLaunchTemplate
from trainium_cdk.network import ClusterNetwork, ExistingNetwork
from trainium_cdk.node_records import NodeRecords
from trainium_cdk.quota_gate import QuotaGate
from trainium_cdk.security_group import EfaSecurityGroup

__all__ = [
    "ClusterNetwork",
    "CompileCache",
    "EfaSecurityGroup",
    "ExistingNetwork",
    "FleetGate",
    "NeuronFleet",
    "NeuronLaunchTemplate",
    "NodeRecords",
    "QuotaGate",
    "TrainiumCluster",
]
