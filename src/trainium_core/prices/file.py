"""Reads a price file. The snapshot of this package and users' files have the same format."""

import csv
from collections.abc import Mapping
from datetime import date
from decimal import Decimal, InvalidOperation
from functools import cache
from io import StringIO
from pathlib import Path

from trainium_core.facts import DATA
from trainium_core.prices.price import SPOT, Origin, Price, PricedItem, PriceTable, products
from trainium_core.problems import nearest

REQUIRED = ("product", "region", "usd", "date", "source")
OPTIONAL = ("instance_type", "zone_id", "confidence")
NOT_LISTED = "none"
"""Replaces the amount if the source states that AWS does not list the price."""

_LIMIT = 1_000_000


class PricesError(ValueError):
    """A price file is invalid. The message names the file and, for a row, its line."""


@cache
def snapshot_prices() -> PriceTable:
    """The prices in this package, each with its date."""
    return _parse((DATA / "prices.csv").read_text(encoding="utf-8"), "the snapshot", "snapshot")


def load_prices(path: Path) -> PriceTable:
    """A user's prices.

    Raises:
        PricesError: The file cannot be read, or a value is invalid.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise PricesError(f"{path}: cannot be read ({error})") from error
    return _parse(text, str(path), "yours")


def _parse(text: str, where: str, origin: Origin) -> PriceTable:
    try:
        rows = csv.DictReader(StringIO(text), strict=True)
        columns = tuple(rows.fieldnames or ())
        _check_columns(columns, where)
        prices: dict[PricedItem, Price] = {}
        for row in rows:
            line = f"{where}: line {rows.line_num}"
            if None in row or None in row.values():
                raise PricesError(f"{line}: does not have the {len(columns)} values of the header")
            item = _item(row, line)
            if item in prices:
                raise PricesError(f"{line}: a second price for the same item")
            prices[item] = _price(row, line, origin)
    except csv.Error as error:
        raise PricesError(f"{where}: not CSV: {error}") from error
    return prices


def _check_columns(columns: tuple[str, ...], where: str) -> None:
    missing = [column for column in REQUIRED if column not in columns]
    unknown = [column for column in columns if column not in (*REQUIRED, *OPTIONAL)]
    if missing or unknown:
        lacks = [f"lacks {', '.join(missing)}"] if missing else []
        adds = [f"has unknown columns: {', '.join(unknown)}"] if unknown else []
        raise PricesError(
            f"{where}: the header {' and '.join([*lacks, *adds])}; "
            f"it must name {', '.join(REQUIRED)} and may name {', '.join(OPTIONAL)}"
        )


def _item(row: Mapping[str, str], line: str) -> PricedItem:
    product, instance_type, zone_id = row["product"], row.get("instance_type", ""), row.get("zone_id", "")
    known = products()
    if product not in known:
        close = nearest(product, tuple(known))
        hint = f"; nearest: {close}" if close else ""
        raise PricesError(f"{line}: unknown product {product!r}{hint}; known: {', '.join(known)}")
    if not row["region"]:
        raise PricesError(f"{line}: has no region")
    if bool(instance_type) != known[product].of_instance_type:
        need = "needs an" if known[product].of_instance_type else "takes no"
        raise PricesError(f"{line}: {product} {need} instance_type")
    if zone_id and product != SPOT:
        raise PricesError(f"{line}: zone_id is {zone_id!r}, but only {SPOT} has prices per zone; leave it empty")
    return PricedItem(product=product, region=row["region"], instance_type=instance_type, zone_id=zone_id)


def _price(row: Mapping[str, str], line: str, origin: Origin) -> Price:
    try:
        day = date.fromisoformat(row["date"]).isoformat()
    except ValueError as error:
        raise PricesError(f"{line}: date is {row['date']!r}, must be a day such as 2026-11-21") from error
    if not row["source"]:
        raise PricesError(f"{line}: has no source; state where the price is from")
    usd = None if row["usd"] == NOT_LISTED else _amount(row["usd"], line)
    return Price(usd=usd, source=row["source"], date=day, confidence=row.get("confidence", ""), origin=origin)


def _amount(text: str, line: str) -> Decimal:
    try:
        usd = Decimal(text)
    except InvalidOperation:
        usd = Decimal("NaN")
    if not usd.is_finite() or not 0 < usd < _LIMIT:
        raise PricesError(
            f"{line}: usd is {text!r}, must be dollars for one unit, above 0 and below {_LIMIT:,}, such as 21.50, "
            f"or {NOT_LISTED}; omit the row if the price is unknown"
        )
    return usd
