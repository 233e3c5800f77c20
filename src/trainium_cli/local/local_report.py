"""The state of the embedded AWS as a table."""

from typing import TYPE_CHECKING

from trainium_cli.layout import Pairs, Text

if TYPE_CHECKING:
    from trainium_local.server import Health


def health_table(health: "Health") -> Pairs:
    """Its settings and its contents."""
    from trainium_local.seeds.vcpu_quotas import seeded_quotas

    names = {quota.code: quota.name for quota in seeded_quotas()}
    rows = list[tuple[str, str]]()

    def add(label: str, value: str) -> None:
        rows.append((label, value))

    add("endpoint", health.endpoint)
    add("account", f"{health.account} (not a real one)")
    add("region", health.region)
    add("started", f"{health.started}, process {health.pid}, version {health.version}")
    add("quotas", "\n".join(f"{code}  {value:4.0f} vCPU  {names[code]}" for code, value in health.quotas.items()))
    if health.fail_nodes:
        add("fail nodes", f"the first {health.fail_nodes} report a missing device")
    add("permissions", "IAM policies are enforced" if health.iam == "enforced" else "IAM is not enforced")
    if not health.stand_in_nodes:
        add("nodes", "no stand-ins: you write the records")
    add("types", f"{len(health.adapters)} resource types (see --json), and those that moto can create and delete")
    add("log", health.log)
    add("use", "trn local -- COMMAND: passes the keys of this start, which every request needs")
    return Pairs(rows=[(Text(label, "bold"), Text(value)) for label, value in rows])
