"""The CDK app: settings of cdk.json in, the stacks of trn:stacks out."""

import pkgutil
import sys
from pathlib import Path

from trainium_core import Plan, PlanError
from trainium_core.engines.registry import ENGINES
from trainium_core.plan.context import plan_from_cdk


def main() -> None:
    try:
        plan = plan_from_cdk(Path(__file__).parent)
    except PlanError as error:
        sys.exit(str(error))
    define(plan)


def define(plan: Plan) -> None:
    # Imported here: aws_cdk starts Node.js, which a mistake in the plan does not need.
    from aws_cdk import App

    app = App()
    for engine in ENGINES.values():
        if engine.key in plan.stacks:
            pkgutil.resolve_name(engine.stack_class)(app, engine.construct_id, plan=plan)
    app.synth()


if __name__ == "__main__":
    main()
