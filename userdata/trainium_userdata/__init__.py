"""User data: the boot script with which a node sets itself up, verifies its devices and reports what it found."""

from trainium_userdata.places import NodePlaces
from trainium_userdata.script import node_user_data
from trainium_userdata.size import check_user_data

__all__ = ["NodePlaces", "check_user_data", "node_user_data"]
