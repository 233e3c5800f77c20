"""The CDK app: settings of cdk.json in, the selected stacks out."""

import gc
import pkgutil
import sys
from pathlib import Path

from stacks.selected_stacks import cdk_command_line, with_selected_stacks
from trainium_cdk.nodejs_options import set_nodejs_options
from trainium_core import Plan, PlanError
from trainium_core.engines.registry import ENGINES
from trainium_core.plan.context import plan_from_cdk


def main() -> None:
    try:
        plan = with_selected_stacks(plan_from_cdk(Path(__file__).parent), cdk_command_line())
    except PlanError as error:
        sys.exit(str(error))
    define(plan)


def define(plan: Plan) -> None:
    # Ends before memory matters, and the collector would go over the large aws_cdk modules again and again.
    gc.disable()
    set_nodejs_options()
    # Imported here: aws_cdk starts Node.js, and a mistake in the plan is shown without.
    from aws_cdk import App

    app = App()
    for engine in ENGINES.values():
        if engine.key in plan.stacks:
            pkgutil.resolve_name(engine.stack_class)(app, engine.construct_id, plan=plan)
    app.synth()


if __name__ == "__main__":
    main()
