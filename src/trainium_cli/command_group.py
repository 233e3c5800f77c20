"""A click group whose help shows in whole what each of its commands does, in as many lines as that takes."""

import sys

import click


class CommandGroup(click.Group):
    """Shows the first sentence of each command; click's own group cuts it where the screen ends."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        shown = [(name, command) for name, command in commands if command is not None and not command.hidden]
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(sys.maxsize)) for name, command in shown])
