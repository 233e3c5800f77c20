"""EksJobsStack: what jobs on an existing EKS cluster need."""

from constructs import Construct

from trainium_cdk import EksJobs, Plan, PlanStack


class EksJobsStack(PlanStack):
    """The bucket and the role of a plan's jobs on EKS."""

    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan) -> None:
        super().__init__(scope, construct_id, plan=plan)
        EksJobs(self, "Jobs", plan=plan)
