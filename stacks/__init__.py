"""The stacks of this repository's app, by their names in trn:stacks."""

from stacks.pcs_stack import PcsStack
from stacks.sagemaker_training_stack import SageMakerTrainingStack
from stacks.trn_cluster_stack import TrnClusterStack

STACKS = {
    "cluster": TrnClusterStack,
    "sagemaker": SageMakerTrainingStack,
    "pcs": PcsStack,
}
