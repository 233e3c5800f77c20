"""The CDK app: settings of cdk.json in, TrnClusterStack out."""

import gc
import sys
from pathlib import Path

from trainium_core import Plan, PlanError
from trainium_core.context import plan_from_cdk
from trainium_core.naming import STACK_NAME
from trainium_userdata import check_user_data


def main() -> None:
    try:
        plan = plan_from_cdk(Path(__file__).parent)
        check_user_data(plan)
    except PlanError as error:
        sys.exit(str(error))
    define(plan)


def define(plan: Plan) -> None:
    # Ends before memory matters, and the collector would go over the large aws_cdk modules again and again.
    gc.disable()
    # Imported here: aws_cdk starts Node, and a mistake in the plan is told without.
    from aws_cdk import App

    from stacks.trn_cluster_stack import TrnClusterStack

    app = App()
    TrnClusterStack(app, STACK_NAME, plan=plan)
    app.synth()


if __name__ == "__main__":
    main()
