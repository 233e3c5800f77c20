"""Capacity Reservations of EC2, which moto lacks: the embedded AWS has none."""

from typing import Any

from moto.core.responses import ActionResult


def describe_capacity_reservations(response: Any) -> ActionResult:  # noqa: ARG001
    return ActionResult({"CapacityReservations": []})
