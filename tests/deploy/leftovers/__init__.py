"""One resource of each kind that an audit lists, as the leftovers of a cluster."""

from collections.abc import Mapping

from tests.deploy.leftovers.computers import COMPUTERS
from tests.deploy.leftovers.identity import IDENTITY
from tests.deploy.leftovers.maker import Client, Maker, Plant
from tests.deploy.leftovers.network import NETWORK
from tests.deploy.leftovers.services import SERVICES
from tests.deploy.leftovers.storage import STORAGE
from tests.deploy.leftovers.training import TRAINING

ALWAYS_ENDED = "SageMaker training job"
"""The only kind that cannot be created: in the embedded AWS, a job has ended as soon as it is created."""

PLANTS: Mapping[str, Plant] = {**COMPUTERS, **STORAGE, **NETWORK, **TRAINING, **SERVICES, **IDENTITY}

_FIRST_NUMBER = 100


def plant_all(client: Client, *, cluster: str, stack: str) -> Mapping[str, str]:
    """Create one of each kind, in the name of a cluster and a stack. Returns kind -> name."""
    return {
        kind: plant(Maker(client=client, cluster=cluster, stack=stack, number=number))
        for number, (kind, plant) in enumerate(PLANTS.items(), start=_FIRST_NUMBER)
    }
