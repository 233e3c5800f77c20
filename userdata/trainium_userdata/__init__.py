"""User data: what a node needs to set itself up, to verify its devices and to report what it found."""

from trainium_userdata.locations import NodeLocations
from trainium_userdata.script import node_script, node_user_data

__all__ = ["NodeLocations", "node_script", "node_user_data"]
