"""One trial of a CDK app: the pinned CDK CLI deploys it, updates it with a tag, and destroys it."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from trainium_cli.cdk_program import find_cdk
from trainium_cli.score.account import Account
from trainium_cli.score.corpus import App
from trainium_cli.score.outcome import FailedError, Outcome
from trainium_cli.score.trials import look_what_is_left, through, trial
from trainium_local.environment import ACCOUNT_ID

NOT_COPIED = shutil.ignore_patterns("node_modules", "cdk.out", "cdk.context.json", ".*")
LAST_LINES = 12


def try_app(account: Account, app: App, *, limit: float) -> Outcome:
    """Deploy all stacks of a copy of the app, update them with a tag, destroy them, look what is left."""
    with trial(account, app.name) as outcome, TemporaryDirectory(prefix="trn-score-app-") as name:
        copy = Path(name) / app.folder.name
        shutil.copytree(app.folder, copy, ignore=NOT_COPIED, symlinks=True)
        cdk = find_cdk(Path.cwd())

        def run(*arguments: str, folder: Path = copy) -> None:
            environment = account.environment() | {"CDK_HOME": name}
            command = [cdk, *arguments, "--no-notices"]
            try:
                done = subprocess.run(
                    command,
                    cwd=folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    timeout=limit,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                raise FailedError(f"cdk {arguments[0]} still runs after {limit:.0f} s") from None
            if done.returncode:
                raise FailedError(_last_words(done.stdout + done.stderr))

        if not account.bootstrapped:
            try:
                run("bootstrap", f"aws://{ACCOUNT_ID}/{account.existing.region}", folder=Path(name))
            except FailedError as error:
                outcome.reason = f"cdk bootstrap: {error}"
                return outcome
            account.bootstrapped = True

        def deploy() -> None:
            run("deploy", "--all", "--require-approval", "never", "--output", "cdk.out")
            for stack, document in _stacks(copy / "cdk.out"):
                listed = account.client("cloudformation").get_paginator("list_stack_resources")
                made = [one for page in listed.paginate(StackName=stack) for one in page["StackResourceSummaries"]]
                outcome.count(document, made, account.server.created)

        assembly = ("--all", "--app", "cdk.out")
        with look_what_is_left(account, outcome):
            through(
                outcome,
                deploy,
                lambda: run("deploy", *assembly, "--require-approval", "never", "--tags", "score=updated"),
                lambda: run("destroy", *assembly, "--force"),
            )
    return outcome


def _stacks(assembly: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The names and templates of the stacks of an assembly, those of its stages as well."""
    for manifest in assembly.rglob("manifest.json"):
        for key, artifact in json.loads(manifest.read_text()).get("artifacts", {}).items():
            if artifact["type"] == "aws:cloudformation:stack":
                properties = artifact["properties"]
                template = json.loads((manifest.parent / properties["templateFile"]).read_text())
                yield properties.get("stackName", key), template


def _last_words(said: str) -> str:
    lines = [line for line in said.splitlines() if line.strip()]
    told = [line for line in lines if "❌" in line or "CREATE_FAILED" in line or "UPDATE_FAILED" in line]
    return "\n".join((told or lines)[-LAST_LINES:])
