"""Groups of commands: one that imports commands on demand, and one that shows complete summaries."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby
from typing import Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem


@dataclass(frozen=True)
class LazyCommand:
    """The module of a command, the command's name in it, and its summary and title in the help of the group."""

    module: str
    summary: str
    attribute: str
    group: str = "Commands"


class LazyGroup(click.Group):
    """A group of LazyCommands. Its help is made from their summaries, without importing them."""

    def __init__(self, *args: Any, lazy_commands: Mapping[str, LazyCommand], **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.lazy_commands = lazy_commands

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands, without importing them, and options after a hyphen."""
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
        width = max(map(len, self.lazy_commands))
        for title, commands in groupby(self.lazy_commands.items(), key=lambda item: item[1].group):
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), lazy.summary) for name, lazy in commands])


def refuse_options_before_subcommand(ctx: click.Context) -> None:
    """Refuse options of a group, which a subcommand would ignore. Raises UsageError."""
    names = [parameter.name for parameter in ctx.command.params if parameter.name]
    if any(ctx.get_parameter_source(name) is not ParameterSource.DEFAULT for name in names):
        raise click.UsageError(f"pass the options after {ctx.invoked_subcommand}, not before it")


class CommandGroup(click.Group):
    """Shows the first sentence of each command's help, which click's group would cut at the screen's width."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        shown = [(name, command) for name, command in commands if command is not None and not command.hidden]
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(sys.maxsize)) for name, command in shown])


class CommandWithSections(click.Command):
    """Shows options in sections of its help.

    Args:
        sections: Names of parameters by the title of their section. The section Options also gets all others.
        arguments: As for click.Command.
    """

    def __init__(self, *, sections: Mapping[str, Sequence[str]], **arguments: Any) -> None:
        super().__init__(**arguments)
        titles = {name: title for title, names in sections.items() for name in names}
        self.sections: dict[str, list[click.Parameter]] = {title: [] for title in sections}
        for parameter in self.params:
            self.sections[titles.get(parameter.name or "", "Options")].append(parameter)
        self.params = [parameter for parameters in self.sections.values() for parameter in parameters]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        shown = {title: [one.get_help_record(ctx) for one in params] for title, params in self.sections.items()}
        shown["Options"].append(
            help_option.get_help_record(ctx) if (help_option := self.get_help_option(ctx)) else None
        )
        for title, records in shown.items():
            with formatter.section(title):
                formatter.write_dl([(first, text) for first, text in filter(None, records) if text])
