"""Test inputs for the modules of trn_job: an object store in memory, and a launch."""

from pathlib import Path
from typing import Any

from trainium_wire.job import Job
from trn_job.launch import Launch


class MemoryStore:
    """The objects of all jobs, in memory."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}

    def at(self, url: str) -> "MemoryStore":
        assert url in ("s3://records/jobs", "s3://data/tokens/")
        return self

    def read(self, key: str) -> Any:
        return self.objects.get(key)

    def write(self, key: str, content: Any) -> None:
        self.objects[key] = content

    def keys(self) -> list[str]:
        return list(self.objects)

    def create(self, key: str, content: Any) -> bool:
        return self.objects.setdefault(key, content) is content

    def write_text(self, key: str, text: bytes) -> None:
        self.objects[key] = text

    def upload(self, key: str, file: Path, digest: str = "") -> None:
        assert len(digest) == 64
        self.objects[key] = file.read_bytes()

    def download(self, key: str, file: Path) -> bool:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(self.objects.get(key, b""))
        return key in self.objects


def launch(rank: int = 0, nodes: int = 1, **spec: Any) -> Launch:
    return Launch(
        url="s3://records/jobs",
        spec=Job(**{"id": "job", "nodes": nodes, "processes_per_node": 1, "command": "true", **spec}),
        attempt=1,
        rank=rank,
        nodes=[{"instance_id": f"i-{k}", "address": f"10.0.0.{k}"} for k in range(nodes)],
        folder="/nowhere",
        resume_from="step-1",
        resume_job="job",
    )
