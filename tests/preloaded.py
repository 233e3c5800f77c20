"""The imports and data of the process that tests.forked forks."""

from importlib import import_module

import botocore.session

from trainium_cli.main import COMMANDS
from trainium_local import server
from trainium_local.services import lambda_starter

# moto reads its settings from the environment, some of them when it is imported.
server._replace_caller_settings(region="us-west-2", port=1)

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

# The models of services: this saves a second for each server, and a quarter of a second for each `trn`.
server.share_loader()
moto = import_module("moto.core.utils")
for service in ("autoscaling", "cloudformation", "ec2", "fsx", "iam", "logs", "s3", "sagemaker", "sns", "ssm", "sts"):
    moto.get_service_model(service)
    botocore.session.create_loader(None).load_service_model(service, "service-2")

lambda_starter.start_fork_server()
