"""Reads the records of stacks from Systems Manager."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService, Clients
from trainium_wire.stack_record import RECORDS_PATH, StackRecord, StackRecordError

_read: WeakKeyDictionary[Clients, dict[str, "Records"]] = WeakKeyDictionary()
"""The last records by region, which all objects with the same clients use: a command needs one request for them."""


@dataclass(frozen=True, kw_only=True)
class Records:
    """The records of an account in a region.

    Attributes:
        readable: The newest record of each engine in each stack, sorted by cluster. A stack has one cluster.
        unreadable: Why other parameters cannot be used, by the name of the parameter.
    """

    readable: Sequence[StackRecord] = ()
    unreadable: Mapping[str, str] = field(default_factory=dict[str, str])


class AwsRecords(AwsService):
    def records(self, *, again: bool = False) -> Records:
        """The records of all clusters. Raises UnavailableError.

        Args:
            again: Read them again, although an object with the same clients has read them.
        """
        known = _read.setdefault(self._clients, {})
        if again or self.region not in known:
            known[self.region] = self._records()
        return known[self.region]

    def stack_records(self, stack: str) -> Sequence[StackRecord]:
        """The records of a stack. Reads again if there were none. Raises UnavailableError."""
        for again in (False, True):
            found = [record for record in self.records(again=again).readable if record.stack == stack]
            if found:
                return found
        return ()

    def _records(self) -> Records:
        newest, unreadable = dict[tuple[str, str], StackRecord](), dict[str, str]()
        with read_errors("ssm:GetParametersByPath"):
            pages = self.client("ssm").get_paginator("get_parameters_by_path")
            found = [*pages.paginate(Path=RECORDS_PATH, Recursive=True).search("Parameters[]")]
            for parameter in sorted(found, key=lambda parameter: parameter["LastModifiedDate"]):
                try:
                    record = StackRecord.from_parameter(parameter["Name"], parameter["Value"])
                except StackRecordError as error:
                    unreadable[parameter["Name"]] = str(error)
                else:
                    newest[record.stack, record.engine] = record
        return Records(readable=sorted(newest.values(), key=lambda record: record.name), unreadable=unreadable)
