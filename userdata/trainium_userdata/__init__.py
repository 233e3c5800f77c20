"""User data: what a node needs to set itself up, to verify its devices and to report what it found."""

from trainium_userdata.places import NodePlaces
from trainium_userdata.script import node_script, node_user_data

__all__ = ["NodePlaces", "node_script", "node_user_data"]
