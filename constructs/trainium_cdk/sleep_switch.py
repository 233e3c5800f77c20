"""Whether a cluster sleeps: a parameter of its stack, so that no synthesis is needed to change it."""

from aws_cdk import CfnCondition, CfnParameter, CfnResource, Fn
from constructs import Construct, IConstruct

from trainium_core.naming import ASLEEP_PARAMETER


class SleepSwitch(Construct):
    """The parameter `Asleep` of a stack, `true` or `false`, and what depends on it. One in a stack.

    `trn sleep` and `trn wake` set it by an update of the stack; the CDK CLI keeps it as it is at a deployment.
    """

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id)
        parameter = CfnParameter(
            self,
            "Asleep",
            type="String",
            allowed_values=["true", "false"],
            default="false",
            description="Whether the cluster sleeps: no nodes, and none of what costs money without them",
        )
        parameter.override_logical_id(ASLEEP_PARAMETER)
        self.asleep = parameter.value_as_string
        self._awake = CfnCondition(self, "Awake", expression=Fn.condition_equals(self.asleep, "false"))
        self._awake.override_logical_id("Awake")
        self._only_awake: list[CfnResource] = []

    def only_awake(self, resource: CfnResource) -> None:
        """Let a resource be there only while the cluster is awake."""
        resource.cfn_options.condition = self._awake
        self._only_awake.append(resource)

    def count(self, nodes: int) -> str:
        """A property of so many nodes while the cluster is awake, of none while it sleeps.

        Whoever has it is created, or changed, after all that is there only while the cluster is awake.
        """
        # CloudFormation allows no DependsOn on what may not be there, but knows a reference inside of a condition.
        after = [str(nodes), *(resource.ref for resource in self._only_awake)]
        return self.when_awake(Fn.select(0, after) if after[1:] else after[0], "0")

    def when_awake(self, value: str, otherwise: str) -> str:
        """A property of one value while the cluster is awake, of another while it sleeps."""
        return Fn.condition_if(self._awake.logical_id, value, otherwise).to_string()

    def always_there(self, construct: IConstruct) -> list[IConstruct]:
        """The resources of a construct that others may depend on."""
        return [one for one in construct.node.find_all() if CfnResource.is_cfn_resource(one) and not self._covers(one)]

    def _covers(self, construct: IConstruct) -> bool:
        return any(construct.node.path == one.node.path for one in self._only_awake)
