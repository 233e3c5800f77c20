"""Whether user data fits: EC2 takes no more than a fixed number of bytes."""

from trainium_core.facts import facts
from trainium_core.naming import CACHE_PREFIX, RECORDS_PREFIX
from trainium_core.plan import Plan
from trainium_core.problems import PlanError, Problem
from trainium_userdata.places import NodePlaces
from trainium_userdata.script import node_user_data

_LONGEST_BUCKET = "b" * 63
"""S3 documentation, bucket naming rules: 3 to 63 characters."""


def check_user_data(plan: Plan) -> None:
    """Refuse a plan whose setup script makes the user data too large, wherever the cluster's buckets will be.

    Raises PlanError.
    """
    limit: int = facts()["user_data"]["limit_bytes"]
    size = len(node_user_data(plan, longest_places(plan)).encode())
    if size <= limit:
        return
    script, excess = len((plan.setup_script or "").encode()), size - limit
    raise PlanError(
        [
            Problem(
                key="setup_script",
                got=f"a script of {script:,} bytes, which makes user data of {size:,} bytes",
                allowed=f"user data of {limit:,} bytes, which leaves {script - excess:,} bytes for the script",
                fix=f"shorten the script by {excess:,} bytes, or keep the most of it in S3 and let it fetch that",
            )
        ]
    )


def longest_places(plan: Plan) -> NodePlaces:
    """Places no cluster of this plan's catalogue can exceed; the real ones are known only when it is deployed."""
    return NodePlaces(
        region=max(plan.catalog.regions, key=len),
        cache_url=f"s3://{_LONGEST_BUCKET}/{CACHE_PREFIX}",
        report_url=f"s3://{_LONGEST_BUCKET}/{RECORDS_PREFIX}",
    )
