"""A click group that imports a command only when it is called, so that `trn --help` answers at once."""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NoReturn

import click
from click.shell_completion import CompletionItem, add_completion_class

from trainium_cli.completion_values import COMPLETION
from trainium_cli.exit_codes import ExitCode
from trainium_cli.interruption import tell_interrupted


@dataclass(frozen=True, kw_only=True)
class LazyCommand:
    """Where a command is found, and the line that the group's help shows for it."""

    module: str
    attribute: str
    summary: str


class LazyGroup(click.Group):
    """A group of LazyCommands. Its help is written from their summaries, without importing any of them."""

    def __init__(self, *args: Any, lazy_commands: Mapping[str, LazyCommand], **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.lazy_commands = lazy_commands

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command. With --json a usage that click refuses is printed as JSON too, as every other outcome is."""
        given = sys.argv[1:] if args is None else list(args)
        own = given[: given.index("--")] if "--" in given else given  # what comes after belongs to another program
        run: Callable[..., Any] = super().main
        options = (prog_name, complete_var)
        if COMPLETION in os.environ:
            from trainium_cli.completion_command import SHELL_CLASSES

            for one in SHELL_CLASSES:
                add_completion_class(one)
        if not standalone_mode or "--json" not in own:
            return run(given, *options, standalone_mode, windows_expand_args, **extra)
        try:
            ended = run(given, *options, False, windows_expand_args, **extra)
        except click.ClickException as error:
            click.echo(json.dumps({"error": error.format_message()}, indent=2))
            error.show()
            sys.exit(error.exit_code)
        except click.Abort:
            sys.exit("Aborted!")
        sys.exit(ended if isinstance(ended, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Ctrl-C ends it with a sentence, and so does a question that nobody is there to answer."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            return _end_interrupted(ctx)
        except click.Abort as error:  # at a prompt
            if isinstance(error.__context__, KeyboardInterrupt):
                return _end_interrupted(ctx)
            click.echo("\nNobody is there to answer: give --yes.", err=True)
            return ctx.exit(ExitCode.BAD_INPUT)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands, without importing any of them, and options after a hyphen."""
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        found = self.lazy_commands.items()
        return [CompletionItem(name, help=lazy.summary) for name, lazy in found if name.startswith(incomplete)]

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(self.lazy_commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        lazy = self.lazy_commands.get(cmd_name)
        if lazy is None:
            return None
        return getattr(import_module(lazy.module), lazy.attribute)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.lazy_commands and not args[0].startswith("-"):
            from trainium_core.problems import nearest

            close = nearest(args[0], tuple(self.lazy_commands))
            hint = f"; did you mean {close}?" if close else ""
            ctx.fail(f"no such command: {args[0]!r}{hint}\nKnown: {', '.join(self.lazy_commands)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, lazy.summary) for name, lazy in self.lazy_commands.items()])


def _end_interrupted(ctx: click.Context) -> NoReturn:
    tell_interrupted()
    ctx.exit(ExitCode.INTERRUPTED)
