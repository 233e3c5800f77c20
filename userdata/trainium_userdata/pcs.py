"""The user data and the lifecycle scripts of nodes of AWS PCS."""

from collections.abc import Mapping

from trainium_core.plan.node_settings import NodeSettings
from trainium_userdata.document import BOUNDARY, cloud_config
from trainium_userdata.locations import NodeLocations
from trainium_userdata.script import slurm_script


def pcs_user_data(locations: NodeLocations, environment: Mapping[str, str] | None = None) -> str:
    """The user data of nodes and of the login node: one multi-part MIME document.

    It holds a cloud-config part only, which runs before the node registers. AWS PCS runs shell scripts of user data
    between the registration and slurmd.

    environment: variables of scripts and jobs on the node, with their values in base64. Default: none.
    """
    return f"""MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="{BOUNDARY}"

--{BOUNDARY}
Content-Type: text/cloud-config; charset="utf-8"

{cloud_config(locations.lines, environment)}
--{BOUNDARY}--
"""


def proof_script(node: NodeSettings, *, slurm_version: str | None = None) -> str:
    """The script of the nodeBootstrapped action of the nodes: without CDK tokens, so its digest is known.

    AWS PCS must run it at every boot, and terminate the node when it fails (EVERY_BOOT, TERMINATE). It ends within
    pcs.proof_seconds of the facts, and its record is in S3 before it ends.

    slurm_version: whose programs the node finds. Default: the default of new clusters.
    """
    return slurm_script(node, "slurm", slurm_version=slurm_version)


def login_script(node: NodeSettings, *, slurm_version: str | None = None) -> str:
    """The script of the nodeBootstrapped action of the login node. It writes no record: no job runs there.

    slurm_version: see `proof_script`.
    """
    return slurm_script(node, "login", slurm_version=slurm_version)
