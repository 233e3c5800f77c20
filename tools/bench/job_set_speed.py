"""The rendering of a job's Kubernetes objects, and the size of the job program."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from tools.demo.private_aws import PrivateAws
from trainium_core.engines.eks.job_program import ARCHIVE, LARGEST_CONFIG_MAP, program_config_map
from trainium_core.engines.eks.job_set import PodSettings, job_objects
from trainium_core.engines.eks.yaml import yaml_documents
from trainium_core.jobs.job import new_job
from trainium_core.jobs.request import JobRequest
from trainium_core.plan import Plan

NODES, RUNS = 1000, 5


def job_set_speed(_: PrivateAws) -> Iterator[tuple[str, str]]:
    """Render the objects of a job on 1,000 nodes as YAML, without the program."""
    plan = Plan.of(
        instance_type="trn2.48xlarge", region="us-east-2", nodes=NODES, stacks=("eks",), eks_cluster="research"
    )
    request = JobRequest(script=Path("train.py"))
    job = new_job(plan, request, script="train.py", now=datetime.now(UTC))
    pods = PodSettings(image="image:1", bucket="bucket", cache_url="s3://cache/folder")
    times: list[float] = []
    text = ""
    for _run in range(RUNS):
        started = time.perf_counter()
        text = yaml_documents(job_objects(plan, job, pods))
        times.append(time.perf_counter() - started)
    yield f"JobSet of {NODES:,} nodes", f"{1000 * median(times):.2f} ms, {len(text):,} characters, median of {RUNS}"
    size = len(program_config_map("default")["binaryData"][ARCHIVE])
    yield "job program in a ConfigMap", f"{size:,} of {LARGEST_CONFIG_MAP:,} bytes"
