"""What EC2 clusters answer about a plan."""

from trainium_core.engines.ec2.checks.efs_check import check_efs
from trainium_core.engines.ec2.checks.image_check import check_image
from trainium_core.engines.ec2.checks.lustre_check import check_lustre
from trainium_core.engines.ec2.checks.offering_check import check_offering
from trainium_core.engines.ec2.checks.quota_check import check_quota
from trainium_core.engines.ec2.checks.reservation_check import check_reservation
from trainium_core.engines.ec2.checks.volume_check import check_volumes
from trainium_core.engines.ec2.costs import cost_items
from trainium_core.engines.ec2.warnings import cluster_warnings
from trainium_core.engines.projections import Projections

PROJECTIONS = Projections(
    cost_items=cost_items,
    warnings=cluster_warnings,
    checks={
        "quota": check_quota,
        "offering": check_offering,
        "reservation": check_reservation,
        "image": check_image,
        "volumes": check_volumes,
        "lustre": check_lustre,
        "efs": check_efs,
    },
)
