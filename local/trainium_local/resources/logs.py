"""Log groups, read back with their tags."""

from trainium_local.resources.api_resource import ApiResource
from trainium_local.resources.registry import Actual, Provisioned, Request


class _LogGroup(ApiResource):
    def read(self, request: Request, physical_id: str) -> Actual | None:
        groups = self.call(request, "DescribeLogGroups", {"logGroupNamePrefix": physical_id})["logGroups"]
        found = next((group for group in groups if group["logGroupName"] == physical_id), None)
        if found is None:
            return None
        tags = self.call(request, "ListTagsForResource", {"resourceArn": found["arn"].removesuffix(":*")})["tags"]
        properties = {
            "LogGroupName": physical_id,
            "RetentionInDays": found.get("retentionInDays"),
            "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
        }
        provisioned = Provisioned(physical_id=physical_id, attributes={"Arn": found["arn"]})
        return Actual(provisioned=provisioned, properties=properties)


KINDS = {"AWS::Logs::LogGroup": _LogGroup}
