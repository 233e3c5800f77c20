"""All kinds of resources that an audit lists: the listings of this folder, and those of the engines."""

from trainium_core.audit.listings.ec2_compute import COMPUTE
from trainium_core.audit.listings.ec2_network import NETWORK
from trainium_core.audit.listings.ec2_storage import STORAGE
from trainium_core.audit.listings.events_and_alarms import EVENTS_AND_ALARMS
from trainium_core.audit.listings.file_systems import FILE_SYSTEMS
from trainium_core.audit.listings.functions_and_logs import FUNCTIONS_AND_LOGS
from trainium_core.audit.listings.identity_and_keys import IDENTITY_AND_KEYS
from trainium_core.audit.listings.listing import Listing
from trainium_core.audit.listings.models import MODELS
from trainium_core.audit.listings.s3 import BUCKETS
from trainium_core.engines.registry import ENGINES

LISTINGS: tuple[Listing, ...] = (
    *COMPUTE,
    *STORAGE,
    *FILE_SYSTEMS,
    *BUCKETS,
    *NETWORK,
    *(listing for engine in ENGINES.values() for listing in engine.listings()),
    *MODELS,
    *FUNCTIONS_AND_LOGS,
    *EVENTS_AND_ALARMS,
    *IDENTITY_AND_KEYS,
)
"""Every kind, in the order of the report."""
