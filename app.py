"""The CDK app of a plan: creates the stacks in trn:stacks from the trn:... settings in cdk.json and of `-c`."""

import sys
from pathlib import Path

from aws_cdk import App

from stacks.eks_jobs_stack import EksJobsStack
from stacks.pcs_stack import PcsStack
from stacks.sagemaker_training_stack import SageMakerTrainingStack
from stacks.trn_cluster_stack import TrnClusterStack
from trainium_cdk import PlanError, plan_from_cdk

try:
    plan = plan_from_cdk(Path(__file__).parent)
except PlanError as error:
    sys.exit(str(error))

app = App()
if "cluster" in plan.stacks:
    TrnClusterStack(app, "TrnClusterStack", plan=plan)
if "sagemaker" in plan.stacks:
    SageMakerTrainingStack(app, "SageMakerTrainingStack", plan=plan)
if "pcs" in plan.stacks:
    PcsStack(app, "PcsStack", plan=plan)
if "eks" in plan.stacks:
    EksJobsStack(app, "EksJobsStack", plan=plan)
app.synth()
