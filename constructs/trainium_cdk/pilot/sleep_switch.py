"""The sleep switch of a cluster: a stack parameter, so that changing it needs no synthesis."""

from weakref import WeakKeyDictionary

from aws_cdk import CfnCondition, CfnParameter, CfnResource, Fn, Stack
from constructs import Construct, IConstruct

from trainium_cdk.checks import refuse
from trainium_cdk.handler_function import HandlerFunction
from trainium_cdk.physical_names import physical_name
from trainium_core.naming import ASLEEP_PARAMETER, SET_ASLEEP_FUNCTION

_switches: WeakKeyDictionary[Stack, "SleepSwitch"] = WeakKeyDictionary()


class SleepSwitch(Construct):
    """The stack parameter `Asleep`, `true` or `false`, and what depends on it. A stack has at most one.

    `trn sleep` and `trn wake` invoke a function of the stack that updates the parameter. The CDK CLI keeps its value in
    later deployments.

    Example:

        switch = SleepSwitch(stack, "Switch")
        address = ec2.CfnEIP(stack, "Address")
        switch.add_when_awake(address)
        gateway = ec2.CfnVPNGateway(stack, "Gateway", type="ipsec.1")
        gateway.node.add_dependency(*switch.resources_when_asleep(vpc))
        group.max_size, group.min_size = switch.count(2), switch.value_when_awake("1", "0")
    """

    asleep: str
    function_arn: str
    function_name: str

    def __init__(self, scope: Construct, construct_id: str) -> None:
        """
        Raises:
            PropsError: The stack already has a switch, or is nested, so that `trn` cannot update it.
        """
        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        if stack.nested:
            allowed = "a stack that is not nested, because `trn` cannot update nested stacks"
            raise refuse(self, "scope", stack.node.path, allowed=allowed, fix="create no SleepSwitch in a nested stack")
        if stack in _switches:
            raise refuse(
                self,
                "scope",
                stack.node.path,
                allowed=f"one SleepSwitch in a stack, and this one has {_switches[stack].node.path}",
                fix="create it before the fleet and pass it as `sleep`, or remove it",
            )
        _switches[stack] = self
        parameter = CfnParameter(
            self,
            "Asleep",
            type="String",
            allowed_values=["true", "false"],
            default="false",
            description="Whether the cluster sleeps: without nodes, and without egress that is billed by the hour",
        )
        parameter.override_logical_id(ASLEEP_PARAMETER)
        self.asleep = parameter.value_as_string
        self._awake = CfnCondition(self, "Awake", expression=Fn.condition_equals(self.asleep, "false"))
        self._when_awake: list[CfnResource] = []
        self._add_function(stack)

    def _add_function(self, stack: Stack) -> None:
        """Add the function that updates the stack. Users invoke it, because a permission to update the stack would
        allow them any template."""
        setter = HandlerFunction(
            self,
            "SetAsleep",
            handler="set_asleep",
            timeout_minutes=1,
            environment={"STACK_ID": stack.stack_id, "PARAMETER": ASLEEP_PARAMETER},
        )
        self.function_arn = setter.arn
        setter.function.override_logical_id(SET_ASLEEP_FUNCTION)
        setter.function.function_name = self.function_name = physical_name(self, SET_ASLEEP_FUNCTION)
        setter.allow(
            actions=["cloudformation:DescribeStacks", "cloudformation:UpdateStack"], resources=[stack.stack_id]
        )

    def add_when_awake(self, resource: CfnResource) -> None:
        """Create a resource only while the cluster is awake.

        Args:
            resource: For example one that is billed even without nodes.

        Raises:
            PropsError: The resource is in another stack than the switch.
        """
        if Stack.of(resource) is not Stack.of(self):
            allowed = f"a resource of {Stack.of(self).node.path}, the stack of the switch"
            raise refuse(self, "resource", resource.node.path, allowed=allowed, fix="create a SleepSwitch in its stack")
        resource.cfn_options.condition = self._awake
        self._when_awake.append(resource)

    def count(self, nodes: int) -> str:
        """A property with the number of nodes, which is 0 while the cluster sleeps.

        A resource with this property is created and updated after the resources that exist only while the cluster is
        awake.

        Args:
            nodes: The number while the cluster is awake.
        """
        # CloudFormation does not allow DependsOn with a conditional resource, but allows a reference in a condition.
        after = [str(nodes), *(resource.ref for resource in self._when_awake)]
        return self.value_when_awake(Fn.select(0, after) if after[1:] else after[0], "0")

    def value_when_awake(self, value: str, otherwise: str) -> str:
        """A property that depends on the switch.

        Args:
            value: The value while the cluster is awake.
            otherwise: The value while it sleeps.
        """
        return Fn.condition_if(self._awake.logical_id, value, otherwise).to_string()

    def resources_when_asleep(self, construct: IConstruct) -> list[IConstruct]:
        """The resources of a construct that also exist while the cluster sleeps, so that others can depend on them.

        Args:
            construct: The construct. It is returned itself if the switch has no conditional resources.
        """
        if not self._when_awake:
            return [construct]
        # By path, because jsii may create two objects for one resource.
        when_awake = {resource.node.path for resource in self._when_awake}
        resources = [child for child in construct.node.find_all() if isinstance(child, CfnResource)]
        return [resource for resource in resources if resource.node.path not in when_awake]


def stack_sleep_switch(construct: Construct) -> SleepSwitch | None:
    """The switch of a construct's stack, created if needed; None in a nested stack, which `trn` cannot update."""
    stack = Stack.of(construct)
    if stack.nested:
        return None
    return _switches.get(stack) or SleepSwitch(stack, "TrainiumCdkSleepSwitch")


def recorded_sleep_function(construct: Construct) -> str | None:
    """The name of the function that sets the parameter of a construct's stack; None without a switch."""
    switch = _switches.get(Stack.of(construct))
    return switch.function_name if switch else None


def check_sleep(construct: Construct, sleep: SleepSwitch | None) -> None:
    """Raise PropsError if the switch is in another stack than the construct: conditions do not cross stacks."""
    if sleep is None:
        return
    own = Stack.of(construct)
    if Stack.of(sleep) is not own:
        allowed = f"the SleepSwitch of {own.node.path}, the stack"
        raise refuse(
            construct, "sleep", sleep.node.path, allowed=allowed, fix="remove it, or pass the switch of this stack"
        )
