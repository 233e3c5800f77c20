"""Explains a failed job with a known error in its outcome or its log."""

from trainium_core.explanations.known_errors import CAUSE, WARNING, Explanation, explain_log
from trainium_core.jobs.engine import JobEngine
from trainium_core.jobs.progress import JobState
from trainium_runtime.errors import UnavailableError
from trainium_wire.job import FAILED, HUNG


def job_explanation(engine: JobEngine, state: JobState) -> Explanation | None:
    """The known error of a failed or hung job; None for other jobs, and without a match.

    If the outcome does not state the cause, searches the failed node's log of the last attempt, or the whole log if the
    engine cannot select a node: the outcome does not contain the output of the compiler and the runtime.

    Raises:
        UnavailableError: The log cannot be opened.
    """
    outcome = state.outcome
    if outcome is None or outcome.result not in (FAILED, HUNG):
        return None
    stated = explain_log([*outcome.traceback.splitlines(), outcome.reason])
    if stated is not None and stated.error.kind == CAUSE:
        return stated
    reads_all = "node" in engine.instead
    log = (
        engine.open_log(state.job.id)
        if reads_all
        else engine.open_log(state.job.id, node=outcome.node or 0, attempt=len(state.attempts) or None)
    )
    try:
        printed = explain_log(line.text for part in (log.new_lines(state), log.last_line()) for line in part)
    except UnavailableError:
        printed = None
    if printed is None or (stated is not None and printed.error.kind == WARNING):
        return stated
    if printed.error.kind != CAUSE and (outcome.traceback or outcome.rank is not None):
        # The process that failed first is known: messages about the end of the others explain nothing.
        return stated
    return printed
