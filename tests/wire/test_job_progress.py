"""Progress of jobs, as read from the records of nodes."""

from trainium_wire.job_progress import node_progress


def test_short_compilations_are_not_rounded_to_zero() -> None:
    progress = node_progress(0, {"compile_caches": [{"stack": "xla", "compile_seconds": 0.4}]})
    assert [cache.compile_seconds for cache in progress.caches] == [0.4]
