"""How entries of SageMaker's answers are read, whatever kind they are."""

from typing import Any

from trainium_core.audit.listings.listing import Entry
from trainium_core.audit.resource import FREE, Charge, Resource

INSTANCES = Charge(unpriced="its instances")


def of_sagemaker(entry: Entry, prefix: str, *, state: str = "", charge: Charge = FREE) -> Resource:
    name, arn = entry[f"{prefix}Name"], entry[f"{prefix}Arn"]
    created: Any = entry.get("CreationTime")
    return Resource(name=name, arn=arn, ids=frozenset([name, arn]), state=state, created=created, charge=charge)
