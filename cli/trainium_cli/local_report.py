"""What the embedded AWS says about itself, as a table for people."""

from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from trainium_local.server import Health


def health_table(health: "Health") -> Table:
    """How it was started, and what is in it."""
    from trainium_local.seeds.vcpu_quotas import seeded_quotas

    names = {quota.code: quota.name for quota in seeded_quotas()}
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("endpoint", health.endpoint)
    table.add_row("account", f"{health.account} (not a real one)")
    table.add_row("region", health.region)
    table.add_row("started", f"{health.started}, process {health.pid}, version {health.version}")
    table.add_row(
        "quotas", "\n".join(f"{code}  {value:4.0f} vCPU  {names[code]}" for code, value in health.quotas.items())
    )
    if health.fail_nodes:
        table.add_row("fail nodes", f"the first {health.fail_nodes} report a missing device")
    table.add_row("permissions", "IAM policies are enforced" if health.iam == "enforced" else "IAM is not enforced")
    if not health.stand_in_nodes:
        table.add_row("nodes", "nobody plays them: their records come from somewhere else")
    table.add_row("created", f"{len(health.created)} types of resources really exist here (see --json)")
    table.add_row("stored", health.schema_only)
    table.add_row("log", health.log)
    table.add_row("use", "trn local -- COMMAND: only with the keys of this start, which it is given, does it answer")
    return table
