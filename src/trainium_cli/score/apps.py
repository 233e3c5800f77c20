"""One trial of a CDK app: the pinned CDK CLI deploys it, updates it with a tag, and destroys it."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from trainium_cli.cdk_program import find_cdk
from trainium_cli.score.account import Account
from trainium_cli.score.corpus import App
from trainium_cli.score.outcome import FailedError, Outcome
from trainium_cli.score.trials import finding_leftovers, through, trial
from trainium_local.environment import ACCOUNT_ID

NOT_COPIED = shutil.ignore_patterns("node_modules", "cdk.out", ".*")
LAST_LINES = 12


@dataclass(frozen=True, kw_only=True)
class AppStack:
    """A stack of a synthesized app."""

    name: str
    region: str
    template: dict[str, Any]


def try_app(account: Account, app: App, *, limit: float) -> Outcome:
    """Deploy all stacks of a copy of the app, update them with a tag, destroy them, list what is left.

    Every region that the app names is bootstrapped first.
    """
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
                raise FailedError(f"cdk {arguments[0]}: {_output_tail(done.stdout + done.stderr)}")

        try:
            run("synth", "--quiet", "--output", "cdk.out")
            stacks = list(stacks_of(copy / "cdk.out", account.existing.region))
            for region in sorted({stack.region for stack in stacks} - account.bootstrapped):
                run("bootstrap", f"aws://{ACCOUNT_ID}/{region}", folder=Path(name))
                account.bootstrapped.add(region)
        except FailedError as error:
            outcome.reason = str(error)
            return outcome

        def deploy() -> None:
            run("deploy", *assembly, "--require-approval", "never")
            for stack in stacks:
                pages = account.client("cloudformation", stack.region).get_paginator("list_stack_resources")
                listed = [
                    one for page in pages.paginate(StackName=stack.name) for one in page["StackResourceSummaries"]
                ]
                outcome.count(stack.template, listed, account.server.created)

        assembly = ("--all", "--app", "cdk.out")
        with finding_leftovers(account, outcome):
            through(
                outcome,
                deploy,
                lambda: run("deploy", *assembly, "--require-approval", "never", "--tags", "score=updated"),
                lambda: run("destroy", *assembly, "--force"),
            )
    return outcome


def stacks_of(assembly: Path, default_region: str) -> Iterator[AppStack]:
    """The stacks of a cloud assembly and of its stages; one that names no region is in `default_region`."""
    for manifest in assembly.rglob("manifest.json"):
        for key, artifact in json.loads(manifest.read_text()).get("artifacts", {}).items():
            if artifact["type"] == "aws:cloudformation:stack":
                properties, region = artifact["properties"], artifact["environment"].rpartition("/")[2]
                yield AppStack(
                    name=properties.get("stackName", key),
                    region=default_region if region == "unknown-region" else region,
                    template=json.loads((manifest.parent / properties["templateFile"]).read_text()),
                )


def _output_tail(output: str) -> str:
    """The first failure and what follows it; all, if nothing looks like one."""
    lines = [line for line in output.splitlines() if line.strip()]
    failed = (at for at, line in enumerate(lines) if "❌" in line or "CREATE_FAILED" in line or "UPDATE_FAILED" in line)
    return "\n".join(lines[next(failed, -LAST_LINES) :][:LAST_LINES])
