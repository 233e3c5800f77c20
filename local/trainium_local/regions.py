"""The regions of AWS, as botocore knows them offline."""

from botocore.session import Session


def known_regions() -> tuple[str, ...]:
    """Names of the regions in which EC2 is."""
    return tuple(Session().get_available_regions("ec2"))
