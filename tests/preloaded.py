"""What the process has imported that tests.forked forks, and what embedded AWSs would each read."""

from importlib import import_module

from trainium_cli.main import COMMANDS
from trainium_local import server
from trainium_local.services import lambda_starter

# moto reads its settings from the environment, some of them as it is imported.
server._forget_the_callers_settings(region="us-west-2", port=1)

for module in (
    *(command.module for command in COMMANDS.values()),
    "moto.moto_server.werkzeug_app",
    "trainium_local.__main__",
    "trainium_local.cloudformation",
    "trainium_local.http_server",
    "trainium_local.permissions.enforcement",
    "trainium_local.request_guard",
    "trainium_local.resources",
    "trainium_local.services.schedules",
    "trainium_local.stand_ins",
    "tests.forked",
):
    import_module(module)

lambda_starter.start_zygote()
