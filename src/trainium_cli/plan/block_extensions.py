"""The extensions of the plan's Capacity Block in `trn capacity`, each with the AWS CLI command that buys it."""

from dataclasses import asdict
from shlex import quote
from typing import Any

from trainium_cli.invocation import Invocation
from trainium_cli.terminal import console, shell_lines, table
from trainium_core.aws.capacity import ExtensionOffering
from trainium_core.capacity.region_options import CapacityRequest
from trainium_core.capacity.search import CapacitySearch
from trainium_core.plan.context import settings_given
from trainium_core.prices.price import CAPACITY_BLOCK
from trainium_runtime.errors import UnavailableError


def planned_block(invocation: Invocation) -> str | None:
    """The reservation ID of the Capacity Block that the settings name. Raises PlanError if cdk.json is invalid."""
    given = settings_given(invocation.cdk_json, invocation.overrides)
    return str(given.get("reservation_id") or "") or None if given.get("capacity") == CAPACITY_BLOCK else None


def extensions_as_json(request: CapacityRequest, found: CapacitySearch) -> dict[str, Any] | None:
    """The extensions; None if the plan names no Capacity Block."""
    if request.block is None:
        return None
    if isinstance(found.extensions, UnavailableError):
        return {"reservation_id": request.block, "unknown": str(found.extensions), "offerings": []}
    offerings = [
        {**asdict(each), "upfront_fee": float(each.upfront_fee), "next": extension_command(request, each)}
        for each in found.extensions
    ]
    return {"reservation_id": request.block, "unknown": None, "offerings": offerings}


def show_extensions(request: CapacityRequest, found: CapacitySearch) -> None:
    if request.block is None:
        return
    out, of_block = console(), f"of {request.block} by {request.hours} h"
    if isinstance(found.extensions, UnavailableError):
        out.print(f"Extensions {of_block}: unknown: {found.extensions}\n", style="magenta")
        return
    if not found.extensions:
        out.print(f"No extension {of_block} is for sale.\n")
        return
    rows = [
        (each.offering_id, f"{each.end:%Y-%m-%d %H:%M}", f"{each.upfront_fee:,} {each.currency}")
        for each in found.extensions
    ]
    out.print(table([f"Extension {of_block}", "New end (UTC)", "Total"], rows, right=["Total"]))
    out.print("\nTo buy the first one, which is paid in advance and cannot be cancelled:")
    out.print(shell_lines(extension_command(request, found.extensions[0])))
    out.print("The reservation keeps its ID, so no setting changes. If the pilot ends earlier, run `trn extend`.\n")


def extension_command(request: CapacityRequest, offering: ExtensionOffering) -> str:
    return (
        f"aws ec2 purchase-capacity-block-extension --capacity-block-extension-offering-id {offering.offering_id} "
        f"--capacity-reservation-id {quote(request.block or '')} --region {request.plan.region}"
    )
