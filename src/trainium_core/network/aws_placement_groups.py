"""Asks EC2 about placement groups."""

from trainium_core.network.placement_groups import PlacementGroup
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService


class AwsPlacementGroups(AwsService):
    def placement_group(self, name: str) -> PlacementGroup | None:
        with read_errors("ec2:DescribePlacementGroups", absent=("InvalidPlacementGroup.Unknown",)):
            answer = self.client("ec2").describe_placement_groups(GroupNames=[name])
            for entry in answer["PlacementGroups"]:
                return PlacementGroup(name=name, strategy=entry["Strategy"], state=entry["State"])
        return None
