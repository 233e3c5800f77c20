"""The compile cache: the bucket in which nodes share compiled graphs."""

from typing import Literal

from trainium_core.setting_schema.forms import Choice, Pattern, WholeNumber
from trainium_core.setting_schema.setting import AT_DESTROY, BUCKET_NAME, AtDestroy, section, setting


@section
class CacheSettings:
    """A new or an existing bucket."""

    bucket: str | None = setting(
        "cache_bucket",
        Pattern(BUCKET_NAME, "the name of an existing S3 bucket in the region"),
        default=None,
        default_text="a new bucket",
        meaning="existing bucket for the compile cache, such as one that an earlier cluster left",
    )
    access: Literal["read-write", "read"] = setting(
        "cache_access",
        Choice(("read-write", "read")),
        default="read-write",
        meaning="what nodes may do in the bucket of trn:cache_bucket; a cluster that writes to the bucket can run code "
        "on all clusters that read from it",
        replaces_nodes=True,
    )
    at_destroy: AtDestroy | None = setting(
        "cache_at_destroy",
        Choice(AT_DESTROY),
        default=None,
        default_text="destroy",
        meaning="what happens to the new cache bucket at destroy",
    )
    expiration_days: int = setting(
        "cache_expiration_days",
        WholeNumber(1, 3650),
        default=90,
        meaning="days after which a compiled graph expires from the new bucket, except graphs that PyTorch/XLA itself "
        "stores under the prefix neuron-compile-cache/direct/",
    )

    @property
    def outlives_cluster(self) -> bool:
        """Whether the cache is kept when the cluster is destroyed. An existing bucket always is."""
        return self.bucket is not None or self.at_destroy == "retain"
