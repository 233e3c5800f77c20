"""`trn report`: writes the report of a pilot as one page, and writes and verifies evidence packs."""

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import click

from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.invocation import Invocation, json_option, pass_invocation
from trainium_cli.terminal import console, print_json, say
from trainium_core.evidence.decision import GO, NO
from trainium_core.evidence.folder import read_evidence
from trainium_core.evidence.pack import (
    EVIDENCE_FOLDER,
    REPORT,
    STATEMENT,
    digest,
    pack_evidence,
    pack_problems,
    pack_statement,
    read_statement,
    tool_name,
)
from trainium_core.evidence.report import PilotReport, arrange, as_html
from trainium_wire.formats import moment

_LARGEST_MIB = 64
_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_STYLES = {GO: "bold green", NO: "bold red"}


@click.command()
@click.argument("folders", nargs=-1, required=True, metavar="DIR...", type=_FOLDER)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The page to write. Default: report.html; with --pack, only the page in the pack.",
)
@click.option(
    "--pack",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Write a new folder with the page, copies of all files, and an in-toto statement with their digests.",
)
@click.option("--verify", is_flag=True, help="Verify that the files of the pack in DIR match its statement.")
@click.option("--expect", metavar="SHA256", help="With --verify: the SHA-256 that the statement must have.")
@json_option
@pass_invocation
def report(
    invocation: Invocation,
    folders: tuple[Path, ...],
    output: Path | None,
    pack: Path | None,
    verify: bool,
    expect: str | None,
) -> ExitCode:
    """Write the report of a pilot, with its decision.

    Reads the results files of `trn bench` and `trn tco`, the JSON of `trn assess` and contract.toml, and writes one
    HTML page without scripts. The decision by the gates comes first. What is missing is named, and files that cannot be
    read are listed.

    With --verify, the decision is derived again from the evidence in the pack, and must be that of the statement.

    Exit code 0: go, or the pack has no problem. 1: no, or the pack has a problem. 2: a file is a
    link, not a regular file, larger than 64 MiB or not named in UTF-8, or the folder of the new pack exists. 3: not
    yet: something is not measured, a limit was changed, or a file contradicts another or cannot be read.
    """
    if verify:
        if output or pack or len(folders) > 1:
            raise click.UsageError("--verify takes one DIR and no other option than --expect")
        return _verify(next(iter(folders)), expect, as_json=invocation.as_json)
    if expect:
        raise click.UsageError("--expect needs --verify")
    made = datetime.now(UTC)
    arranged = arrange(read_evidence(_files(folders), made))
    written = [] if pack is None else [_write_pack(pack, arranged, made)]
    if not written or output is not None:
        file = output or Path(REPORT)
        file.write_text(_page(arranged, made), encoding="utf-8")
        written.append(str(file))
    if invocation.as_json:
        print_json(_as_json(arranged))
    else:
        _show(arranged)
        say(f"\nWritten: {', '.join(written)}")
    return {GO: ExitCode.OK, NO: ExitCode.NOT_READY}.get(arranged.decision.verdict, ExitCode.UNKNOWN)


def _files(folders: Sequence[Path]) -> Mapping[str, bytes]:
    """Every file below the folders. With several folders, each path begins with the name of its folder.

    Folders with the same name also get their number on the command line, such as 2-evidence.

    Raises:
        CliError: A file is a link or not a regular file, is larger than _LARGEST_MIB, or has a name that is not UTF-8.
    """
    contents = dict[str, bytes]()
    names = [folder.resolve().name for folder in folders]
    for at, folder in enumerate(folders):
        prefix = "" if len(folders) == 1 else names[at] if names.count(names[at]) == 1 else f"{at + 1}-{names[at]}"
        for path in sorted(folder.rglob("*")):
            name = os.fsencode(path).decode(errors="backslashreplace")
            if name != str(path):  # The statement of a pack is JSON.
                raise CliError(f"The name of {name} is not UTF-8. Rename the file.", ExitCode.BAD_INPUT)
            if path.is_symlink():
                raise CliError(f"{path} is a link. Replace it with a copy.", ExitCode.BAD_INPUT)
            if path.is_dir():
                continue
            if not path.is_file():
                raise CliError(f"{path} is not a regular file.", ExitCode.BAD_INPUT)
            if path.stat().st_size > _LARGEST_MIB * 2**20:
                raise CliError(
                    f"{path} has more than {_LARGEST_MIB} MiB. Move it out of the folder.", ExitCode.BAD_INPUT
                )
            contents[(Path(prefix) / path.relative_to(folder)).as_posix()] = path.read_bytes()
    return contents


def _page(arranged: PilotReport, made: datetime) -> str:
    return as_html(arranged, version=version("trainium-cdk"), made=f"{made:%Y-%m-%d %H:%M} UTC")


def _write_pack(folder: Path, arranged: PilotReport, made: datetime) -> str:
    """Write the pack.

    Returns:
        The folder, and the digest of the statement, as a text.

    Raises:
        CliError: The folder exists.
    """
    files = {f"{EVIDENCE_FOLDER}{path}": content for path, content in arranged.evidence.files.items()}
    files[REPORT] = _page(arranged, made).encode()
    statement = pack_statement(
        files,
        made=f"{made:%Y-%m-%dT%H:%M:%SZ}",
        version=version("trainium-cdk"),
        decision=arranged.decision.verdict,
    )
    try:
        folder.mkdir(parents=True)
    except FileExistsError as error:
        raise CliError(f"{folder} exists. Name a new folder.", ExitCode.BAD_INPUT) from error
    for path, content in {**files, STATEMENT: statement}.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return f"{folder}, SHA-256 of its statement: {digest(statement)}"


def _verify(folder: Path, expect: str | None, *, as_json: bool) -> ExitCode:
    files = _files([folder])
    problems = [*pack_problems(files, datetime.now(UTC)), *_page_problems(files)]
    statement = digest(files[STATEMENT]) if STATEMENT in files else None
    if expect is not None and statement != expect.lower():
        problems.append(f"the SHA-256 of {STATEMENT} is {statement}, not {expect}")
    if as_json:
        print_json({"problems": problems, "statement_sha256": statement})
    elif problems:
        for problem in problems:
            say(f"{problem}.")
    else:
        say(f"The {len(files) - 1} files of {folder} match its statement, and the evidence gives the decision in it.")
        say(f"SHA-256 of the statement: {statement}")
        if expect is None:
            say("Pass the digest that you received as --expect: a rewritten pack has a different one.")
    return ExitCode.NOT_READY if problems else ExitCode.OK


def _page_problems(files: Mapping[str, bytes]) -> Iterator[str]:
    """A problem if this version of the package wrote the page, and would write another from the evidence."""
    statement = read_statement(files)
    made = moment(statement.made) if statement else None
    if statement is None or statement.tool != tool_name(version("trainium-cdk")) or REPORT not in files:
        return
    if made is None or _page(arrange(pack_evidence(files, made)), made).encode() != files[REPORT]:
        yield f"{REPORT} is not the page that the evidence gives"


def _show(arranged: PilotReport) -> None:
    out, verdict, evidence = console(), arranged.decision.verdict, arranged.evidence
    out.print(f"Decision: {verdict}", style=_STYLES.get(verdict, "bold yellow"))
    for reason in arranged.decision.reasons:
        say(f"  {reason}")
    say("")
    for number, step in enumerate(arranged.steps, start=1):
        say(f"{number}. {step.title} ({step.word}): {step.text}")
    if arranged.lab_record_count:
        count = f"{arranged.lab_record_count} of {len(evidence.records)}"
        say(f"\n{count} results files are from stand-ins, not from Trainium, and do not affect the decision.")
    for path, why in evidence.not_read.items():
        out.print(f"warning: {path} does not count: {why}", style="yellow")


def _as_json(arranged: PilotReport) -> Mapping[str, object]:
    evidence = arranged.evidence
    return {
        "decision": arranged.decision.verdict,
        "reasons": list(arranged.decision.reasons),
        "steps": [{"title": step.title, "state": step.state, "text": step.text} for step in arranged.steps],
        "records": {path: {"id": record.id, "side": record.side} for path, record in evidence.records.items()},
        "not_measured": list(arranged.not_measured),
        "not_read": dict(evidence.not_read),
        "foreign": dict(evidence.foreign),
        "contradictions": list(evidence.contradictions),
    }
