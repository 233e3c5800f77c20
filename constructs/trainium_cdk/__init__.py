"""CDK constructs for AWS Trainium clusters. Each is useful alone in an app of your own."""

import gc
from typing import TYPE_CHECKING, Any

from trainium_core.lazy_names import lazy_names

if TYPE_CHECKING:
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

_MODULES = {
    "Capacity": "capacity",
    "ClusterNetwork": "network",
    "CompileCache": "compile_cache",
    "EfaSecurityGroup": "security_group",
    "ElasticFileSystem": "elastic_file_system",
    "ExistingElasticFileSystem": "elastic_file_system",
    "ExistingLustreFileSystem": "lustre_file_system",
    "ExistingNetwork": "network",
    "FleetGate": "fleet_gate",
    "HyperPod": "hyperpod",
    "ICompileCache": "compile_cache",
    "INeuronFleet": "fleet_interface",
    "LustreFileSystem": "lustre_file_system",
    "NeuronFleet": "fleet",
    "NeuronLaunchTemplate": "launch_template",
    "NeuronSubnet": "node_subnet",
    "NodeFileSystem": "node_file_system",
    "NodeKeeper": "node_keeper",
    "NodeRecords": "node_records",
    "PropsError": "props_error",
    "QuotaGate": "quota_gate",
    "SageMakerTraining": "sagemaker_training",
    "SetupScript": "setup_script",
    "SleepSwitch": "sleep_switch",
    "TrainiumCluster": "cluster",
}
"""Where each name is: loaded at its first use, so that an app waits for no module of the CDK that it does not use."""


_load = lazy_names(__name__, _MODULES)


def __getattr__(name: str) -> Any:
    # What is loaded stays to the end: for the most part classes of aws-cdk-lib, more than 100,000 objects. Python looks
    # at all of them in each full collection of garbage, of which one comes while more is loaded, and one when it ends.
    gc.freeze()
    try:
        return _load(name)
    finally:
        gc.freeze()


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
