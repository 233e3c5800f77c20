"""The preflight checks of a cluster of EC2 instances."""

from collections.abc import Mapping

from trainium_core.engines.ec2.checks.efs_check import check_efs
from trainium_core.engines.ec2.checks.image_check import check_image
from trainium_core.engines.ec2.checks.lustre_check import check_lustre
from trainium_core.engines.ec2.checks.offering_check import check_offering
from trainium_core.engines.ec2.checks.placement_check import check_placement
from trainium_core.engines.ec2.checks.quota_check import check_quota
from trainium_core.engines.ec2.checks.reservation_check import check_reservation
from trainium_core.engines.ec2.checks.volume_check import check_volumes
from trainium_core.preflight.finding import Check

CHECKS: Mapping[str, Check] = {
    "quota": check_quota,
    "offering": check_offering,
    "reservation": check_reservation,
    "placement": check_placement,
    "image": check_image,
    "volumes": check_volumes,
    "lustre": check_lustre,
    "efs": check_efs,
}
