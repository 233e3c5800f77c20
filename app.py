"""The CDK app: creates the stacks in trn:stacks from the settings in the context, which is cdk.json and `-c`."""

import sys
from pathlib import Path

from trainium_core import Plan, PlanError
from trainium_core.naming import CONSTRUCT_IDS
from trainium_core.plan.context import plan_from_cdk


def main() -> None:
    try:
        plan = plan_from_cdk(Path(__file__).parent)
    except PlanError as error:
        sys.exit(str(error))
    synthesize(plan)


def synthesize(plan: Plan) -> None:
    # Imported here, because aws_cdk starts Node.js, which is not needed to report an invalid plan.
    from aws_cdk import App

    from stacks import STACKS

    app = App()
    for key, construct_id in CONSTRUCT_IDS.items():
        if key in plan.stacks:
            STACKS[key](app, construct_id, plan=plan)
    app.synth()


if __name__ == "__main__":
    main()
