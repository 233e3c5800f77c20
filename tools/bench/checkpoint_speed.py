"""Measures how fast a node stores a checkpoint, relative to boto3's transfers of the same files."""

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median

from tools.demo.private_aws import PrivateAws

RUNS = 3
BUCKET = "checkpoint-speed"
SMALL_FILES, SMALL_BYTES = 1000, 4096
LARGE_FILES, LARGE_BYTES = 8, 16 * 1024**2
NODE = Path(__file__).parents[2] / "userdata/trainium_userdata/node"


def checkpoint_speed(aws: PrivateAws) -> Iterator[tuple[str, str]]:
    """Store many small files and a few large ones, alternately by a node's wrapper and by boto3's transfer manager."""
    aws.client("s3").create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": aws.region})
    small, large = (
        _checkpoint(aws.folder / name, number, size)
        for name, number, size in (("small", SMALL_FILES, SMALL_BYTES), ("large", LARGE_FILES, LARGE_BYTES))
    )
    # A new process for each, because the connections and the memory of one must not affect the other.
    rounds: list[list[float]] = []
    for _ in range(RUNS):
        seconds: list[float] = []
        for folder in (small, large):
            for upload in (_by_node, _by_boto3):
                with ProcessPoolExecutor(1, get_context("spawn")) as fresh:
                    seconds.append(fresh.submit(upload, folder, aws.endpoint, aws.region).result())
        rounds.append(seconds)
    shutil.rmtree(small)
    shutil.rmtree(large)
    node_small, boto3_small, node_large, boto3_large = (median(times) for times in zip(*rounds, strict=True))
    yield (
        f"upload of a checkpoint of {SMALL_FILES:,} files of {SMALL_BYTES:,} bytes, and the same with boto3",
        f"{SMALL_FILES / node_small:.0f} and {SMALL_FILES / boto3_small:.0f} files per second, "
        f"{boto3_small / node_small:.2f} times, medians of {RUNS}",
    )
    megabytes = LARGE_FILES * LARGE_BYTES / 1e6
    yield (
        f"upload of a checkpoint of {LARGE_FILES} files, {megabytes:.0f} MB, and the same with boto3",
        f"{megabytes / node_large:.0f} and {megabytes / boto3_large:.0f} MB/s, "
        f"{boto3_large / node_large:.2f} times, medians of {RUNS}",
    )


def _checkpoint(folder: Path, files: int, size: int) -> Path:
    place = folder / "step-1"
    place.mkdir(parents=True)
    for number in range(files):
        (place / f"shard-{number}").write_bytes(os.urandom(size))
    return folder


def _by_node(folder: Path, endpoint: str, region: str) -> float:
    """Seconds in which the wrapper of a job stores a checkpoint after the end of its command."""
    sys.path.insert(0, str(NODE))
    from trainium_wire.job import Job
    from trn_job.checkpoints import Checkpoints
    from trn_job.launch import Launch
    from trn_job.store import Store
    from trn_node.imds import Credentials, Imds
    from trn_node.objects import Objects

    class Keys(Imds):
        def credentials(self) -> Credentials:
            return Credentials(os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"], "token")

    root = folder.parent / "node"
    (root / "etc/trn").mkdir(parents=True, exist_ok=True)
    (root / "etc/trn/places.env").write_text(f"TRN_REGION={region}\n")
    os.environ.update(ROOT=str(root), AWS_ENDPOINT_URL_S3=endpoint)
    url = f"s3://{BUCKET}/jobs"
    launch = Launch(
        url=url,
        spec=Job(id=f"job-{time.time_ns()}", nodes=1, processes_per_node=1, command="true"),
        attempt=1,
        rank=0,
        nodes=[{"instance_id": "i-0", "address": "127.0.0.1"}],
        folder=str(folder),
    )
    checkpoints = Checkpoints(launch, Store(Objects(Keys(), retries=0), url), folder, print)
    checkpoints.end_running(0)
    return _seconds(checkpoints.upload)


def _by_boto3(folder: Path, endpoint: str, region: str) -> float:
    """Seconds in which boto3's transfer manager stores the same files, with its default of 10 connections."""
    import boto3
    from s3transfer.manager import TransferManager

    client = boto3.Session().client("s3", endpoint_url=endpoint, region_name=region)
    files = sorted(file for file in (folder / "step-1").iterdir())

    def upload() -> None:
        with TransferManager(client) as transfers:
            uploads = [transfers.upload(str(file), BUCKET, f"boto3/{time.time_ns()}/{file.name}") for file in files]
            for each in uploads:
                each.result()

    return _seconds(upload)


def _seconds(task: Callable[[], object]) -> float:
    started = time.monotonic()
    task()
    return time.monotonic() - started
