"""An account in one region, with its parts."""

from trainium_core.aws.budgets import AwsBudgets
from trainium_core.aws.capacity import AwsCapacity
from trainium_core.aws.identity import AwsIdentities
from trainium_core.aws.images import AwsImages
from trainium_core.aws.network import AwsNetwork
from trainium_core.aws.prices import AwsPrices
from trainium_core.aws.resource_use import AwsResourceUse
from trainium_core.aws.simulation import AwsSimulation
from trainium_core.aws.storage import AwsStorage
from trainium_core.stacks.aws_stacks import AwsStacks
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_quotas import AwsQuotas
from trainium_runtime.aws_service import Clients


class AwsAccount(AwsIdentities):
    """What the checks of a plan read. The parts share clients, and their methods raise UnavailableError."""

    def __init__(self, region: str, *, clients: Clients | None = None) -> None:
        super().__init__(region, clients=clients)
        self.budgets = AwsBudgets(region, clients=self._clients)
        self.capacity = AwsCapacity(region, clients=self._clients)
        self.images = AwsImages(region, clients=self._clients)
        self.network = AwsNetwork(region, clients=self._clients)
        self.prices = AwsPrices(region, clients=self._clients)
        self.quotas = AwsQuotas(region, clients=self._clients)
        self.resource_use = AwsResourceUse(region, clients=self._clients)
        self.simulation = AwsSimulation(region, clients=self._clients)
        self.stacks = AwsStacks(region, clients=self._clients)
        self.storage = AwsStorage(region, clients=self._clients)

    def parameter(self, name: str) -> str | None:
        """The value of an SSM parameter; None if the parameter does not exist.

        Raises:
            UnavailableError: A request failed or was denied.
        """
        with read_errors("ssm:GetParameter", absent=("ParameterNotFound", "not a valid namespace")):
            return self.client("ssm").get_parameter(Name=name)["Parameter"]["Value"]
        return None
