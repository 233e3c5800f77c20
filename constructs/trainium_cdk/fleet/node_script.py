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


class NodeScript(Asset):
    """The script of a node as an asset of the stack. `arn` is that of its S3 object."""

    def __init__(self, scope: Construct, construct_id: str, *, node: NodeSettings, precompiles: bool = False) -> None:
        """precompiles: whether it is for the host of `trn precompile` instead of a node. Default: False."""
        self._settings, self._text = node, node_script(node, precompiles=precompiles)
        with TemporaryDirectory() as folder:
            file = Path(folder) / ("host-script.sh" if precompiles else "node-script.sh")
            file.write_bytes(self._text.encode())
            super().__init__(scope, construct_id, path=str(file))

    @property
    def arn(self) -> str:
        return self.bucket.arn_for_objects(self.s3_object_key)

    def user_data(self, locations: NodeLocations, environment: Mapping[str, str]) -> str:
        """User data that downloads the script. Raises PropsError if it exceeds EC2's limit.

        Args:
            environment: Encoded variables of the node.
        """
        text = node_user_data(self._settings, locations, environment, script=self._text)
        limit = facts()["user_data"]["limit_bytes"]
        if len(text.encode()) > limit:
            allowed = f"variables that fit into the nodes' user data: {limit} bytes, mostly taken by the boot script"
            fix = "put long values into S3, and give their URL"
            raise refuse(self, "environment", ", ".join(environment), allowed=allowed, fix=fix)
        return text
