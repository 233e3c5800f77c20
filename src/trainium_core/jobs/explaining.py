"""Why a job failed, in the words of `trn explain`: from how it ended, else from the log of the node that failed."""

from trainium_core.explanations.known_errors import CAUSE, WARNING, Explanation, explained
from trainium_core.jobs.engine import JobEngine
from trainium_core.jobs.progress import JobState
from trainium_runtime.errors import UnavailableError
from trainium_wire.job import FAILED, HUNG


def job_explanation(engine: JobEngine, state: JobState) -> Explanation | None:
    """None for a job that did not fail by itself, and where nothing is known.

    The log is read to its end: what a compiler or the runtime has printed is not part of a traceback.
    """
    outcome = state.outcome
    if outcome is None or outcome.result not in (FAILED, HUNG):
        return None
    told = explained([*outcome.traceback.splitlines(), outcome.reason])
    if told is not None and told.error.kind == CAUSE:
        return told
    reads_all = "node" in engine.instead
    log = (
        engine.open_log(state.job.id)
        if reads_all
        else engine.open_log(state.job.id, node=outcome.node or 0, attempt=len(state.attempts) or None)
    )
    try:
        printed = explained(line.text for part in (log.new_lines(state), log.last_line()) for line in part)
    except UnavailableError:
        printed = None
    if printed is None or (told is not None and printed.error.kind == WARNING):
        return told
    return printed
