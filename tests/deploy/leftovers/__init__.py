"""One resource of each kind that an audit lists, except ALWAYS_ENDED, as the leftovers of a cluster."""

from collections.abc import Mapping

from tests.deploy.leftovers.computers import COMPUTERS
from tests.deploy.leftovers.identity import IDENTITY
from tests.deploy.leftovers.maker import Client, Creator, Maker
from tests.deploy.leftovers.network import NETWORK
from tests.deploy.leftovers.services import SERVICES
from tests.deploy.leftovers.storage import STORAGE
from tests.deploy.leftovers.training import TRAINING

ALWAYS_ENDED = "SageMaker training job"
"""The only kind that cannot be created: in the embedded AWS, a job has ended as soon as it is created."""

CREATORS: Mapping[str, Creator] = {**COMPUTERS, **STORAGE, **NETWORK, **TRAINING, **SERVICES, **IDENTITY}

_FIRST_NUMBER = 100


def create_all(client: Client, *, cluster: str, stack: str) -> Mapping[str, str]:
    """Create one resource of each kind for a cluster and a stack. Return the names by kind."""
    return {
        kind: create(Maker(client=client, cluster=cluster, stack=stack, number=number))
        for number, (kind, create) in enumerate(CREATORS.items(), start=_FIRST_NUMBER)
    }
