"""What services refuse of a resource and moto accepts: checked for every resource just before it is provisioned.

The facts are in rules.toml, the messages AWS's where they are known; each module goes by one of its tables.
"""

from trainium_local.rules import policies, references, relations
from trainium_local.rules.rule import Properties, Target


def refuse(resource_type: str, properties: Properties, target: Target) -> None:
    """Raise Refused, in the service's words, if the service would not create or change the resource like this."""
    for module in (relations, references, policies):
        module.check(resource_type, properties, target)
