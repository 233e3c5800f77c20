"""The readiness of a fleet: a deployment is completed only after every node is verified."""

from constructs import Construct

from trainium_cdk.fleet.controller import Controller
from trainium_runtime.naming import FLEET_READINESS


class FleetReadiness(Construct):
    """A custom resource that sets the size of the group, and waits until each node is verified and reaches all others.

    CloudFormation updates the group in place and does not replace nodes. This resource does: it terminates nodes of
    another launch template version or subnet before it launches others. Nodes are launched after every resource that
    they need, and terminated before any of these is deleted. It waits for nodes that the controller replaces. It fails
    the deployment with the reason of a node that is not replaced, with a permanent launch failure, or on a timeout. It
    never fails a rollback.

    `summary` is a sentence about the last deployment, `verified_nodes` the number of its verified nodes: 0 if the
    cluster sleeps, or does not have all its nodes now.
    """

    summary: str
    verified_nodes: str

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        controller: Controller,
        nodes: str,
        launch_template_id: str,
        launch_template_version: str,
        subnet_id: str,
        timeout_minutes: int,
    ) -> None:
        """
        Args:
            controller: The controller of the group. It implements this resource.
            nodes: Number of nodes, as text.
            launch_template_id: The launch template of the instances.
            launch_template_version: The version of the launch template, as text.
            subnet_id: The subnet of the instances. Instances of another template, version or subnet are replaced.
            timeout_minutes: How long to wait, up to 55.
        """
        super().__init__(scope, construct_id)
        resource = controller.custom_resource(
            self,
            "Resource",
            resource_type=FLEET_READINESS,
            timeout_minutes=timeout_minutes + 5,
            properties={
                "Nodes": nodes,
                "LaunchTemplateId": launch_template_id,
                "LaunchTemplateVersion": launch_template_version,
                "SubnetId": subnet_id,
                "TimeoutMinutes": timeout_minutes,
                # A rollback acts by the former settings. A changed setting makes the controller look at once.
                "Settings": dict(controller.settings),
            },
        )
        self.summary = resource.get_att_string("Summary")
        self.verified_nodes = resource.get_att_string("Nodes")
