"""The Kubernetes objects that verify the nodes of an EKS cluster, and the taints with which these nodes register."""

from collections.abc import Mapping, Sequence
from typing import Any

from trainium_wire.kubernetes import NEURON, UNVERIFIED

TAINTS = (f"{NEURON}=true:NoSchedule", f"{UNVERIFIED}=true:NoSchedule")
"""All taints of a new node: the last flag --register-with-taints of kubelet replaces earlier ones, also EKS's."""

VERIFY_LABEL = "trn/verify"
"""Label of the nodes that need the verification. The value is `true`."""

VERIFICATION = "trn-node-verification"
"""Name of the objects."""

_HOST_FOLDERS = {
    "program": ("/opt/trn", "Directory", True),
    "settings": ("/etc/trn", "Directory", True),
    "record": ("/var/lib/trn", "Directory", False),
    "log": ("/var/log/trn-node.log", "File", True),
}
"""What the pods share with their node: path, type and whether it is read-only. The node has no framework, and the image
no node program."""


def verification_objects(*, image: str, namespace: str = "kube-system") -> Sequence[Mapping[str, Any]]:
    """A DaemonSet that verifies the nodes with VERIFY_LABEL, and the permissions of its pods.

    The pods may get and patch nodes, and nothing else in Kubernetes. They use the network of the node, and with it the
    permissions of the node's role.

    Args:
        image: The image of jobs, with Python 3.9 or later, a framework for Neuron, neuron-ls, nccom-test and libfabric.
        namespace: Namespace of the DaemonSet and its service account.
    """
    own = {"name": VERIFICATION, "namespace": namespace}
    labels = {"app.kubernetes.io/name": VERIFICATION}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": VERIFICATION}
    pods = {"metadata": {"labels": labels}, "spec": _pod(image)}
    return (
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": own},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": VERIFICATION},
            "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]}],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": VERIFICATION},
            "roleRef": role,
            "subjects": [{"kind": "ServiceAccount", **own}],
        },
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {**own, "labels": labels},
            "spec": {
                "selector": {"matchLabels": labels},
                # Nodes are independent, and a pod that is not ready must not stop the update of others.
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%"}},
                "template": pods,
            },
        },
    )


def _pod(image: str) -> Mapping[str, Any]:
    return {
        "serviceAccountName": VERIFICATION,
        "priorityClassName": "system-node-critical",
        "nodeSelector": {VERIFY_LABEL: "true"},
        "tolerations": [{"operator": "Exists"}],
        # The metadata service, with the permissions of the node's role. No address of the subnet is needed.
        "hostNetwork": True,
        # neuron-ls names the processes that use a device.
        "hostPID": True,
        "terminationGracePeriodSeconds": 30,
        "containers": [
            {
                "name": "verification",
                "image": image,
                "command": ["python3", "-m", "trn_eks"],
                "workingDir": "/",
                "env": [
                    {"name": "PYTHONPATH", "value": "/opt/trn"},
                    {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                ],
                # All devices, without the requests that would keep them from jobs.
                "securityContext": {"privileged": True, "runAsUser": 0},
                "readinessProbe": {"exec": {"command": ["test", "-e", "/tmp/trn-verified"]}, "periodSeconds": 5},
                "volumeMounts": [
                    {"name": name, "mountPath": path, **({"readOnly": True} if read_only else {})}
                    for name, (path, _, read_only) in _HOST_FOLDERS.items()
                ],
            }
        ],
        "volumes": [
            {"name": name, "hostPath": {"path": path, "type": kind}} for name, (path, kind, _) in _HOST_FOLDERS.items()
        ],
    }
