"""The launch template version that nodes are launched from."""

from collections.abc import Mapping

from aws_cdk import CfnResource, Stack
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from trainium_cdk.provider import provider
from trainium_runtime.launch_template_version import RESOURCE_TYPE

_TIMEOUT_MINUTES = 5


class LaunchTemplateVersion(Construct):
    """The version that nodes are launched from. It changes only if the nodes must be replaced.

    Any other change of the launch template, such as a tag, the node program, or a new image behind an SSM parameter,
    creates a version that is not used. `version` is the number, `node_script` the ARN of the script that the version's
    user data downloads, and `summary` a sentence.
    """

    node_script: str
    summary: str
    version: str

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        template: ec2.ILaunchTemplate,
        image_id: str,
        image_name: str,
        node_script_arn: str,
        settings: Mapping[str, str],
        uses: Mapping[str, str],
    ) -> None:
        """
        Args:
            image_id: Image of the newest version.
            image_name: The app's reference to the image; empty for the newest Neuron DLAMI.
            node_script_arn: ARN of the script that the newest version's user data downloads.
            settings: Values, by name, whose change replaces the nodes.
            uses: Resources, by name, whose replacement replaces the nodes.
        """
        super().__init__(scope, construct_id)
        function = provider(Stack.of(self))
        function.allow_describing_its_stack()
        chosen = function.custom_resource(
            self,
            "Resource",
            resource_type=RESOURCE_TYPE,
            timeout_minutes=_TIMEOUT_MINUTES,
            properties={
                "LaunchTemplateId": template.launch_template_id,
                "LatestVersion": template.version_number,
                "Image": image_id,
                "ImageSetting": image_name,
                "NodeScript": node_script_arn,
                "Settings": dict(settings),
                "Uses": dict(uses),
            },
        )
        self._resource = chosen
        self.version = chosen.get_att_string("Version")
        self.node_script = chosen.get_att_string("NodeScript")
        self.summary = chosen.get_att_string("Summary")

    def add_use(self, name: str, value: str) -> None:
        """Add a resource whose replacement replaces the nodes.

        Args:
            name: Name of the resource in `uses`.
            value: ID of the resource.
        """
        resource = self._resource.node.default_child
        assert isinstance(resource, CfnResource)
        resource.add_property_override(f"Uses.{name}", value)
