"""`trn local score`: how many deployments the embedded AWS gets right, beside plain moto."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainium_cli.exit_codes import ExitCode
from trainium_cli.terminal import console, print_json

if TYPE_CHECKING:
    from trainium_cli.score.corpus import Corpus
    from trainium_cli.score.measuring import Score

EMBEDDED, PLAIN = "embedded AWS", "plain moto"
LIMIT_SECONDS = 120


@click.command("score")
@click.argument("folder", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    metavar="N",
    help="At most N templates and N apps, by hashes of their paths.",
)
@click.option("--plain-moto/--no-plain-moto", default=True, show_default=True, help="Measure plain moto as well.")
@click.option("--failures", "show_failures", is_flag=True, help="List what failed, and why.")
@click.option("--json", "as_json", is_flag=True, help="Every outcome as JSON.")
@click.option(
    "--minimum", type=click.FloatRange(0, 100), metavar="PERCENT", help="Exit code 1 if fewer than that go right."
)
@click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True, help="Trials at a time.")
@click.option(
    "--limit",
    type=click.FloatRange(min=1),
    default=LIMIT_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="How long one operation of a stack, or one command of the CDK CLI, may take.",
)
def score(
    folder: Path,
    sample: int | None,
    plain_moto: bool,
    show_failures: bool,
    as_json: bool,
    minimum: float | None,
    jobs: int,
    limit: float,
) -> None:
    """Count what deploys, updates and deletes of the templates and CDK apps in FOLDER, and what wrong ones are refused.

    Measures on servers of its own; an embedded AWS that runs already is not touched. CDK apps are programs: they are
    run, without credentials, but with all rights of yours.
    """
    from trainium_cli.score.account import embedded_aws
    from trainium_cli.score.account import plain_moto as plain
    from trainium_cli.score.corpus import read_corpus
    from trainium_cli.score.report import RULES, failures, score_as_json, score_table, share_clean
    from trainium_local.lifecycle import LocalError

    corpus = read_corpus(folder, sample=sample)
    if not (corpus.templates or corpus.apps or corpus.wrong):
        raise click.ClickException(f"{folder}: no template, CDK app or list of wrong deployments that can be tried")
    servers = {EMBEDDED: embedded_aws, **({PLAIN: plain} if plain_moto else {})}
    try:
        scores = {name: _measured(corpus, name, server, limit=limit, jobs=jobs) for name, server in servers.items()}
    except LocalError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        print_json(score_as_json(corpus, scores))
    else:
        console().print(score_table(scores))
        for reason, number in sorted(corpus.left_out.items()):
            console().print(f"left out: {number} that need {reason}")
        console().print(RULES)
        for line in failures(scores) if show_failures else ():
            console().print(line)
    if minimum is not None and share_clean(scores[EMBEDDED]) * 100 < minimum:
        raise SystemExit(ExitCode.NOT_READY)


def _measured(corpus: "Corpus", name: str, server: Any, *, limit: float, jobs: int) -> "Score":
    """The score of one kind of server, with a bar on standard error if that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from trainium_cli.score.measuring import measure

    total = len(corpus.templates) + len(corpus.apps) + len(corpus.wrong)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task(name, total=total)
        return measure(corpus, server, limit=limit, jobs=jobs, tried=lambda _: progress.advance(task))
