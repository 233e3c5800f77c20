"""Notifies the nodes of a cluster of their end, in the membership, which every node reads."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from trainium_core.nodes.aws_fleets import AwsFleets
from trainium_runtime.aws_errors import read_errors, write_errors
from trainium_runtime.errors import RequestRefusedError
from trainium_runtime.node_store import NodeStore
from trainium_wire.keys import RECORDS_PREFIX
from trainium_wire.membership import Notice, without

_ATTEMPTS = 5  # to update a membership that the node reconciler changes concurrently
_NO_BUCKET = ("NoSuchBucket",)


class AwsNodeNotices(AwsFleets):
    """The notices of trainium_core.nodes.groups.NoticeAccount."""

    def notices(self, stack: str) -> Sequence[Notice]:
        bucket = self._records(stack)
        if bucket is not None:
            with read_errors(f"s3:GetObject on the bucket {bucket}", absent=_NO_BUCKET):
                return self._store(bucket).membership().membership.notices
        return ()

    def announce(self, stack: str, notice: Notice) -> bool:
        return self._change(stack, lambda there: (*without(there, notice.kind), notice))

    def withdraw(self, stack: str, kind: str) -> None:
        self._change(stack, lambda there: without(there, kind))

    def _change(self, stack: str, change: Callable[[tuple[Notice, ...]], tuple[Notice, ...]]) -> bool:
        """Whether there is a membership, which then has the notices."""
        bucket = self._records(stack)
        if bucket is None:
            return False
        with write_errors(f"s3:GetObject or s3:PutObject on the bucket {bucket}", absent=_NO_BUCKET):
            store = self._store(bucket)
            for _ in range(_ATTEMPTS):
                there = store.membership()
                if there.etag is None:
                    return False
                wanted = replace(there.membership, notices=change(there.membership.notices))
                if wanted == there.membership or store.write_membership(wanted, replacing=there):
                    return True
            raise RequestRefusedError(f"the membership changed {_ATTEMPTS} times in the meantime")
        return False

    def _records(self, stack: str) -> str | None:
        deployed = self.deployed_stack(stack)
        return self.fleet_resources(stack, deployed).records_bucket if deployed else None

    def _store(self, bucket: str) -> NodeStore:
        return NodeStore(self.client("s3"), bucket, RECORDS_PREFIX)
