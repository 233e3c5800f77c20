"""Which version of their launch template the nodes are launched from."""

from collections.abc import Mapping

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from trainium_cdk.handler_function import HandlerFunction
from trainium_runtime.launch_template_version import RESOURCE_TYPE


class LaunchTemplateVersion(Construct):
    """The version that the nodes have, until something changes that needs other nodes.

    Every other change of the launch template, such as a tag, the node program, or an image parameter that moved on,
    makes a version that no node is launched from. `version` is the number, `node_script` the ARN of what its user data
    fetch, `summary` a sentence.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        template: ec2.CfnLaunchTemplate,
        image_id: str,
        image_name: str,
        node_script_arn: str,
        settings: Mapping[str, str],
        uses: Mapping[str, str],
        gives_image: bool = False,
    ) -> None:
        """
        image_id: what the newest version boots. node_script_arn: what its user data fetch.
        image_name: how the app names the image; empty for the newest Neuron DLAMI.
        settings: what a running node cannot take on, by name; another value means other nodes.
        uses: resources that nodes cannot do without, by name; another one means other nodes.
        gives_image: whether `image`, the image that the version boots, is needed. Default: False.
        """
        super().__init__(scope, construct_id)
        function = HandlerFunction(self, "Chooser", handler="launch_template_version", timeout_minutes=1)
        function.allow_describing_its_stack()
        chosen = function.custom_resource(
            self,
            "Version",
            resource_type=RESOURCE_TYPE,
            properties={
                "LaunchTemplateId": template.ref,
                "LatestVersion": template.attr_latest_version_number,
                "Image": image_id,
                "ImageSetting": image_name,
                "NodeScript": node_script_arn,
                "Settings": dict(settings),
                "Uses": dict(uses),
                # A stack of an earlier version of this package has the answer without the image: another property asks.
                **({"GivesImage": "true"} if gives_image else {}),
            },
        )
        self.version = chosen.get_att_string("Version")
        self.node_script = chosen.get_att_string("NodeScript")
        self.image = chosen.get_att_string("Image") if gives_image else image_id
        self.summary = chosen.get_att_string("Summary")
