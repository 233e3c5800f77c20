"""The script that nodes download and run at their first boot, because it does not fit into user data."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from aws_cdk.aws_s3_assets import Asset
from constructs import Construct

from trainium_cdk.checks import refuse
from trainium_core.facts import facts
from trainium_core.plan.node_settings import NodeSettings
from trainium_userdata.locations import NodeLocations
from trainium_userdata.script import node_script, node_user_data


class ScriptAsset(Asset):
    """A script as an asset of the stack. `text` is its text."""

    text: str

    def __init__(self, scope: Construct, construct_id: str, *, text: str) -> None:
        self.text = text
        with TemporaryDirectory() as folder:
            file = Path(folder) / "node-script.sh"
            file.write_bytes(text.encode())
            super().__init__(scope, construct_id, path=str(file))

    @property
    def arn(self) -> str:
        """ARN of the script's S3 object."""
        return self.bucket.arn_for_objects(self.s3_object_key)


class NodeScript(ScriptAsset):
    """The script of a node of a fleet."""

    def __init__(self, scope: Construct, construct_id: str, *, node: NodeSettings) -> None:
        """
        Args:
            node: The settings of the node.
        """
        self._settings = node
        super().__init__(scope, construct_id, text=node_script(node))

    def user_data(self, locations: NodeLocations, environment: Mapping[str, str]) -> str:
        """User data that downloads the script. Raises PropsError if it exceeds EC2's limit.

        Args:
            environment: Environment variables of the node, with their values in base64.
        """
        text = node_user_data(self._settings, locations, environment, script=self.text)
        limit = facts()["user_data"]["limit_bytes"]
        if len(text.encode()) > limit:
            allowed = f"variables that fit into the nodes' user data of {limit} bytes, together with the boot script"
            fix = "put long values into S3, and pass their URL"
            raise refuse(self, "environment", ", ".join(environment), allowed=allowed, fix=fix)
        return text
