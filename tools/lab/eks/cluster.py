"""Nodes of an EKS cluster: the user data of a verified node group, and stand-ins for nodeadm and kubelet."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.lab.eks.api_server import KUBELET, POD, ApiServer
from tools.lab.hardware import Hardware
from tools.lab.laboratory import REGION, Laboratory
from tools.lab.layers import FRAMEWORK_ENVIRONMENT, write_file, write_unit
from tools.lab.network import SERVICES
from tools.lab.neuron_software import wrapper
from tools.lab.node import Node
from tools.lab.paths import RUN
from tools.lab.plans import lab_plan
from tools.lab.site import BUCKET, SHORT_TIMEOUTS, Site
from trainium_core.plan.node_settings import node_settings
from trainium_userdata.document import BOUNDARY
from trainium_userdata.eks import VERIFY_LABEL, verification_objects
from trainium_userdata.locations import NodeLocations
from trainium_userdata.script import eks_node_script, eks_user_data
from trainium_wire.keys import RECORDS_PREFIX
from trainium_wire.kubernetes import NEURON

ASSETS = "trnlab-assets"
API_HOST = f"kubernetes.{REGION}.amazonaws.com"
EKS_PART = f"""--{BOUNDARY}
Content-Type: application/node.eks.aws

apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  kubelet:
    flags:
      - --node-labels=eks.amazonaws.com/nodegroup=trn1,{VERIFY_LABEL}=true
      - --register-with-taints={NEURON}=true:NoSchedule

--{BOUNDARY}--
"""
"""What EKS adds to the user data of a managed node group, as far as it concerns the flags of kubelet."""

_CONFIG_UNIT = """\
[Unit]
DefaultDependencies=no
Before=cloud-init.service cloud-init-network.service
After=local-fs.target trnlab-hardware.service

[Service]
Type=oneshot
ExecStart=/usr/bin/nodeadm init --skip run
StandardError=journal+console
"""
_RUN_UNIT = """\
[Unit]
After=nodeadm-config.service cloud-final.service
Requires=nodeadm-config.service

[Service]
Type=oneshot
ExecStart=/usr/bin/nodeadm init --skip config
StandardError=journal+console
"""
_KUBELET_UNIT = """\
[Service]
EnvironmentFile=/etc/eks/kubelet/environment
ExecStart=/usr/bin/kubelet $NODEADM_KUBELET_ARGS
Restart=on-failure
RestartSec=5
KillMode=process
StandardOutput=journal+console
StandardError=journal+console
"""
"""Order, dependencies and restarts of the units of awslabs/amazon-eks-ami at 81fec2e8, in
templates/al2023/runtime/rootfs/etc/systemd/system. kubelet is not enabled: nodeadm starts it at every boot. Debian runs
cloud-init before sysinit.target and after multi-user.target, where these units would be in ordering cycles: hence no
default dependencies, and cloud-init.target instead of multi-user.target."""


def eks_layer(folder: Path) -> Path:
    """Write the layer with what the EKS-optimized image adds to the Neuron driver and tools."""
    for program, stand_in in (("aws", "aws_s3_cp"), ("nodeadm", "nodeadm"), ("kubelet", "kubelet")):
        write_file(folder, f"usr/bin/{program}", wrapper(stand_in))
    write_unit(folder, "nodeadm-config.service", _CONFIG_UNIT, wanted_by="multi-user.target")
    write_unit(folder, "nodeadm-run.service", _RUN_UNIT, wanted_by="cloud-init.target")
    write_file(folder, "etc/systemd/system/kubelet.service", _KUBELET_UNIT, mode=0o644)
    (folder / FRAMEWORK_ENVIRONMENT / "bin").mkdir(parents=True)
    (folder / FRAMEWORK_ENVIRONMENT / "bin/python3").symlink_to("/usr/bin/python3")
    return folder


class EksNodes:
    """Makes nodes of one node group."""

    def __init__(self, lab: Laboratory, api: ApiServer) -> None:
        self.lab, self.api, self.site = lab, api, Site(lab, lab_plan())
        script = eks_node_script(node_settings(self.site.plan))
        key = f"{hashlib.sha256(script.encode()).hexdigest()}.sh"
        write_file(lab.package_hosts.hosts, f"{ASSETS}.s3.{REGION}.amazonaws.com/{key}", script)
        locations = NodeLocations(
            region=REGION, report_url=f"s3://{BUCKET}/{RECORDS_PREFIX}", node_script_url=f"s3://{ASSETS}/{key}"
        )
        document = eks_user_data(locations, script=script)
        self._user_data = document.replace(f"--{BOUNDARY}--\n", EKS_PART).encode()
        self._layers: Sequence[Path] = [eks_layer(RUN / "eks"), *lab.image]

    def node(self, hardware: Hardware | None = None) -> Node:
        """Make a node, powered off. Its host name is its name in Kubernetes."""
        node = self.site.node(hardware, layers=self._layers, user_data=self._user_data)
        node.set_environment(SHORT_TIMEOUTS)
        (daemons,) = [one for one in verification_objects(image="image-of-jobs") if one["kind"] == "DaemonSet"]
        settings: dict[str, Any] = {
            "node": node.instance.host_name,
            "host": API_HOST,
            "port": self.api.port,
            "authority": self.lab.certificates.authority.read_text(),
            "kubelet_token": KUBELET,
            "pod_token": POD,
            "image": f"/{FRAMEWORK_ENVIRONMENT}/bin",
            "environment": SHORT_TIMEOUTS,
            "pod": daemons["spec"]["template"]["spec"],
        }
        node.write("etc/trnlab/eks.json", json.dumps(settings))
        return node


def api_server(lab: Laboratory) -> ApiServer:
    """The API server of the cluster, at the address of the services."""
    return ApiServer(SERVICES, lab.certificates)
