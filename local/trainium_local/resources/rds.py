"""Databases, whose engine may be written in any case."""

from trainium_local.resources.api_resource import ReadableResource
from trainium_local.resources.registry import Properties


class _Database(ReadableResource):
    def adapt(self, properties: Properties) -> Properties:
        """`MySQL` -> `mysql`, as RDS does."""
        return {**properties, **({"Engine": str(properties["Engine"]).lower()} if "Engine" in properties else {})}


KINDS = {"AWS::RDS::DBCluster": _Database, "AWS::RDS::DBInstance": _Database}
