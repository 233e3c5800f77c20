"""Buckets with their content, including noncurrent versions and unfinished uploads, which are billed too."""

from collections import Counter
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import islice

from trainium_core.audit.listings.listing import ClientFactory, Entry, Listing, Location, gib
from trainium_core.audit.resource import Charge, ChargedItem, Resource
from trainium_core.plurals import count
from trainium_runtime.aws_errors import read_errors

PAGES = 50
"""Maximum number of counted pages of 1,000 versions and delete markers. The price of a larger bucket is unknown."""

_BYTES_PER_GB = 2**30


@dataclass
class _Content:
    """The counted content of a bucket.

    Attributes:
        sizes: Bytes by storage class.
        versions: Number of object versions.
        old: Number of noncurrent object versions.
        markers: Number of delete markers.
        uploads: Number of unfinished multipart uploads on the first page.
        is_complete: Whether all versions were counted.
    """

    sizes: Counter[str] = field(default_factory=Counter[str])
    versions: int = 0
    old: int = 0
    markers: int = 0
    uploads: int = 0
    is_complete: bool = True

    @property
    def size(self) -> int:
        return self.sizes.total()


def _measure(client_of: ClientFactory, bucket: Resource) -> Resource | None:
    content = _content(client_of, bucket.name)
    return replace(bucket, detail=_in_words(content), charge=_charge(content))


@Listing(
    "S3 bucket",
    "AWS::S3::Bucket",
    arn_type="s3",
    permission="s3:ListAllMyBuckets",
    entries="Buckets[]",
    operation="list_buckets",
    measure=_measure,
)
def _buckets(entry: Entry, location: Location) -> Resource:
    name = entry["Name"]
    return Resource(
        name=name,
        arn=f"arn:{location.partition}:s3:::{name}",
        ids=frozenset([name]),
        created=entry.get("CreationDate"),
        charge=Charge(unpriced="storage that was not counted"),
    )


def _content(client_of: ClientFactory, bucket: str) -> _Content:
    s3, content = client_of("s3"), _Content()
    with read_errors(f"s3:ListBucketVersions on the bucket {bucket}"):
        pages = iter(s3.get_paginator("list_object_versions").paginate(Bucket=bucket))
        for page in islice(pages, PAGES):
            for version in page.get("Versions", ()):
                content.sizes[version.get("StorageClass", "STANDARD")] += version["Size"]
                content.versions += 1
                content.old += not version["IsLatest"]
            content.markers += len(page.get("DeleteMarkers", ()))
        content.is_complete = next(pages, None) is None
    with read_errors(f"s3:ListBucketMultipartUploads on the bucket {bucket}"):
        content.uploads = len(s3.list_multipart_uploads(Bucket=bucket).get("Uploads") or ())
    return content


def _in_words(content: _Content) -> str:
    counted = f"{count(content.versions, 'object version')} ({content.old} noncurrent), {gib(content.size)}"
    parts = [
        counted if content.is_complete else f"more than {counted}",
        count(content.markers, "delete marker") if content.markers else "",
        count(content.uploads, "unfinished upload") if content.uploads else "",
    ]
    return ", ".join(part for part in parts if part)


def _charge(content: _Content) -> Charge:
    unpriced = [name for name in sorted(content.sizes) if name != "STANDARD"]
    unpriced += ["more versions than were counted"] if not content.is_complete else []
    unpriced += ["unfinished uploads"] if content.uploads else []
    stored = Decimal(content.sizes["STANDARD"]) / _BYTES_PER_GB
    items = (ChargedItem(product="s3-storage", quantity=stored),) if stored else ()
    return Charge(items=items, unpriced=", ".join(unpriced))


BUCKETS = (_buckets,)
