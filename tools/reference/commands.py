"""Every visible `trn` command with its help and options, and the exit codes."""

import inspect
from collections.abc import Iterator

import click

from tools.reference.markdown import code, table, text
from trainium_cli.exit_codes import ExitCode
from trainium_cli.main import trn


def exit_codes() -> str:
    return table(("exit code", "means"), ((code(exit_code.value), text(exit_code.meaning)) for exit_code in ExitCode))


def command_options() -> str:
    return "\n\n".join(_sections(trn, click.Context(trn, info_name="trn")))


def _sections(group: click.Group, context: click.Context) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if command.hidden:
            continue
        inner = click.Context(command, info_name=name, parent=context)
        yield _section(command, inner)
        if isinstance(command, click.Group):
            yield from _sections(command, inner)


def _section(command: click.Command, context: click.Context) -> str:
    level = "##" if context.parent and context.parent.parent is None else "###"
    usage = " ".join((context.command_path, *command.collect_usage_pieces(context)))
    parts = [f"{level} `{context.command_path}`", f"```text\n{usage}\n```", *_paragraphs(command.help)]
    if rows := list(_options(command, context)):
        parts.append(table(("option", "meaning"), rows))
    parts += _paragraphs(command.epilog)
    return "\n\n".join(parts)


def _paragraphs(shown: str | None) -> Iterator[str]:
    for paragraph in inspect.cleandoc(shown or "").split("\n\n"):
        if paragraph.startswith(("\b\n", "    ")):  # click does not wrap a paragraph that begins with \b.
            yield f"```text\n{inspect.cleandoc(paragraph.removeprefix(chr(8)))}\n```"
        elif paragraph:
            yield text(paragraph)


def _options(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and record[1] and "--help" not in parameter.opts:
            yield code(record[0]), text(record[1])
