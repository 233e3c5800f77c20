"""Shows before a deployment how many running nodes it would end, and asks for consent."""

from collections.abc import Sequence
from pathlib import Path

import click

from trainium_cli.cdk_program import CdkRun
from trainium_cli.exit_codes import ExitCode
from trainium_cli.terminal import say
from trainium_core.nodes.ending_nodes import EndingNodes, NodeChanges, ending_nodes
from trainium_core.stacks.change_sets import ResourceChange
from trainium_runtime.errors import RequestRefusedError, UnavailableError

_CHANGE_SET = "trn-deploy-preview"
_KINDS_NAMED = 4
_KEPT = (
    "Their launch template changes, such as by a tag, a check, trn:verification or a newer image or node program. "
    "Nodes that stay, and those that replace failed ones, are of the version before: raise trn:node_generation to take "
    "on all of it."
)


def ask_about_ending_nodes(
    account: NodeChanges,
    stack: str,
    *,
    construct_id: str,
    program: str,
    context: Sequence[str],
    folder: Path,
    yes: bool,
    replace: bool,
) -> ExitCode | None:
    """What ends the command before anything is changed; None where the deployment may go on.

    A change set is made for this, and deleted again. construct_id: what the CDK CLI calls the stack. replace: whether
    nodes may end without a question. yes: nobody is there to be asked.
    """
    try:
        running = account.running_nodes(stack)
        if not running:
            return None
        # The CDK CLI keeps no change set that changes nothing.
        prepare = ["deploy", construct_id, *context, "--method", "prepare-change-set", "--change-set-name", _CHANGE_SET]
        run = CdkRun(program, [*prepare, "--require-approval", "never"], folder)
        if run.in_few_lines() != 0:
            click.echo(f"\nNothing was deployed: the change set could not be made.\n{run.output_tail}", err=True)
            return ExitCode.NOT_READY
        changes = account.changes(stack, _CHANGE_SET)
        ending = ending_nodes(changes, running=running)
        account.delete_change_set(stack, _CHANGE_SET)
    except UnavailableError as error:
        click.echo(f"Could not tell how many running nodes would end: {error}", err=True)
        return ExitCode.UNKNOWN
    except RequestRefusedError as error:
        click.echo(f"Nothing was deployed: {error}", err=True)
        return ExitCode.NOT_READY
    say(f"{stack}: {_in_words(changes)}.")
    return _answer(ending, running, yes=yes, replace=replace)


def _in_words(changes: Sequence[ResourceChange]) -> str:
    """How many resources of which kinds come, change and go."""
    parts: list[str] = []
    for action, verb in (("Add", "made"), ("Modify", "changed"), ("Remove", "removed")):
        kinds = sorted({one.kind.partition("::")[2].replace("::", " ") for one in changes if one.action == action})
        if kinds:
            number = sum(one.action == action for one in changes)
            named = ", ".join(kinds[:_KINDS_NAMED] + ["and others"] * (len(kinds) > _KINDS_NAMED))
            parts.append(f"{number} resource{'s are' if number > 1 else ' is'} {verb} ({named})")
    return "; ".join(parts) or "nothing changes"


def _answer(ending: EndingNodes, running: int, *, yes: bool, replace: bool) -> ExitCode | None:
    if ending.template_changes:
        say(_KEPT)
    if not ending.count:
        say(f"None of the {running} running nodes ends by this deployment.")
        return None
    message = f"{ending.count} of {running} running nodes would end, with what is on their disks: "
    click.echo(f"{message}{'; '.join(ending.reasons)}.", err=True)
    if replace or (not yes and click.confirm("End them?")):
        return None
    click.echo("Nothing was deployed. To deploy it all the same: `trn deploy --replace-nodes`.", err=True)
    return ExitCode.NODES_WOULD_END
