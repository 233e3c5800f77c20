"""`trn cache`: shows and cleans compile caches in S3."""

import click

from trainium_cli.lazy_group import LazyCommand, LazyGroup

COMMANDS = {
    "status": LazyCommand(
        module="trainium_cli.cache.cache_look_commands",
        attribute="status",
        summary="Show size, cost, compiler releases and hit rate.",
    ),
    "list": LazyCommand(
        module="trainium_cli.cache.cache_look_commands", attribute="list_entries", summary="List the entries."
    ),
    "clean": LazyCommand(
        module="trainium_cli.cache.cache_clean_command",
        attribute="clean_command",
        summary="Delete entries by compiler release, age or use, after confirmation.",
    ),
}


@click.group("cache", cls=LazyGroup, lazy_commands=COMMANDS)
def cache() -> None:
    """Show and clean the compile cache.

    The cache is that of the cluster, or the one in --bucket: a cache can outlive its cluster.
    """
