"""Work on resources in the order of their dependencies, side by side where it waits for somebody else."""

import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextvars import copy_context
from graphlib import TopologicalSorter
from queue import SimpleQueue

#: How many resources of one stack may wait at a time.
SIDE_BY_SIDE = 32


def work_in_order(needs: Mapping[str, set[str]], work: Callable[[str], bool], *, waits: Callable[[str], bool]) -> None:
    """Call `work` for each name of `needs`, an acyclic graph, once it was True for all that the name needs.

    Names that wait have a thread each. The others follow one another in the caller's: moto takes one call at a time, so
    that threads would gain them nothing, and their order stays the same from run to run.
    """
    order = TopologicalSorter(needs)
    order.prepare()
    quick, waiting = deque[str](), deque[str]()
    finished, running = SimpleQueue[tuple[str, bool]](), 0

    def work_aside(name: str) -> None:
        went = False
        try:
            went = work(name)
        finally:
            finished.put((name, went))

    while True:
        for name in order.get_ready():
            (waiting if waits(name) else quick).append(name)
        while waiting and running < SIDE_BY_SIDE:
            context = copy_context()  # with it, the credentials that calls are made with
            threading.Thread(target=context.run, args=(work_aside, waiting.popleft()), daemon=True).start()
            running += 1
        if running and (not quick or not finished.empty()):
            name, went = finished.get()
            running -= 1
        elif quick:
            name = quick.popleft()
            went = work(name)
        else:
            return
        if went:
            order.done(name)
