"""Reads and writes notices, such as of the end of a cluster, in the membership, which every node reads."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from trainium_core.nodes.aws_fleets import AwsFleets
from trainium_runtime.aws_errors import read_errors, write_errors
from trainium_runtime.errors import RequestRefusedError
from trainium_runtime.node_store import NodeStore
from trainium_wire.keys import RECORDS_PREFIX
from trainium_wire.membership import Notice, without

_ATTEMPTS = 5  # The controller may change the membership concurrently.
_NO_BUCKET = ("NoSuchBucket",)


class AwsNodeNotices(AwsFleets):
    """Implements the requests about notices of trainium_core.nodes.groups.NoticeAccount."""

    def notices(self, stack: str) -> Sequence[Notice]:
        bucket = self._bucket(stack)
        if bucket is not None:
            with read_errors(f"s3:GetObject on the bucket {bucket}", absent=_NO_BUCKET):
                return self._store(bucket).membership().membership.notices
        return ()

    def announce(self, stack: str, notice: Notice) -> bool:
        return self._change(stack, lambda current: (*without(current, notice.kind), notice))

    def withdraw(self, stack: str, kind: str) -> None:
        self._change(stack, lambda current: without(current, kind))

    def _change(self, stack: str, change: Callable[[tuple[Notice, ...]], tuple[Notice, ...]]) -> bool:
        """Change the notices in the membership. Returns False without a membership."""
        bucket = self._bucket(stack)
        if bucket is None:
            return False
        with write_errors(f"s3:GetObject or s3:PutObject on the bucket {bucket}", absent=_NO_BUCKET):
            store = self._store(bucket)
            for _ in range(_ATTEMPTS):
                stored = store.membership()
                if stored.etag is None:
                    return False
                changed = replace(stored.membership, notices=change(stored.membership.notices))
                if changed == stored.membership or store.write_membership(changed, replacing=stored):
                    return True
            raise RequestRefusedError(
                f"the membership changed during each of {_ATTEMPTS} attempts to write it; run the command again"
            )
        return False

    def _bucket(self, stack: str) -> str | None:
        fleet = self.fleet_record(stack)
        return fleet.bucket if fleet else None

    def _store(self, bucket: str) -> NodeStore:
        return NodeStore(self.client("s3"), bucket, RECORDS_PREFIX)
