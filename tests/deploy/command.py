"""Runs `trn` as a user does, against an embedded AWS."""

import os
from collections.abc import Mapping
from pathlib import Path

from tests import forked
from tests.constructs.synth import ROOT
from tests.deploy.account import Account, Run
from trainium_local.environment import safe_environment, tool_folders


def run_trn(
    account: Account, *arguments: str, folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> Run:
    """Run a `trn` command, with both output streams in one.

    Args:
        account: The account that the command reaches.
        arguments: The arguments of `trn`.
        folder: The working directory. Default: the folder of the account.
        environment: Additional environment variables. Default: none.
    """
    safe = safe_environment(os.environ, account.aws.connection, tools=tool_folders(ROOT))
    run = forked.run_trn(
        arguments,
        folder=folder or account.folder,
        environment=safe | {"CDK_HOME": str(account.folder)} | dict(environment or {}),
    )
    return Run(code=run.returncode, printed=run.stdout)
