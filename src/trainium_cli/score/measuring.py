"""Everything of a corpus tried on one kind of account, several trials at a time."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from trainium_cli.score.account import Account, Server
from trainium_cli.score.apps import try_app
from trainium_cli.score.corpus import Corpus
from trainium_cli.score.outcome import Outcome
from trainium_cli.score.trials import try_template, try_wrong

Trial = Callable[[Account], Outcome]


@dataclass(frozen=True, kw_only=True)
class Score:
    """The outcomes in the order of the corpus, and the seconds that all took together."""

    templates: tuple[Outcome, ...]
    apps: tuple[Outcome, ...]
    wrong: tuple[Outcome, ...]
    seconds: float


def measure(
    corpus: Corpus,
    server: Callable[[Path], Server],
    *,
    limit: float,
    jobs: int,
    tried: Callable[[Outcome], object] = lambda _: None,
) -> Score:
    """Try all of `corpus`, `jobs` at a time, each on an account of its own.

    limit: seconds for each operation of a stack. tried: called with each outcome, from any thread. Raises LocalError
    if a server does not start.
    """
    started = time.monotonic()
    accounts: SimpleQueue[Account] = SimpleQueue()
    with ThreadPoolExecutor(jobs) as pool:
        opened = list(pool.map(Account, [server] * jobs))
        for account in opened:
            accounts.put(account)

        def run(trial: Trial) -> Outcome:
            account = accounts.get()
            try:
                outcome = trial(account)
            finally:
                accounts.put(account)
            tried(outcome)
            return outcome

        def run_all(trials: Sequence[Trial]) -> tuple[Outcome, ...]:
            return tuple(pool.map(run, trials))

        try:
            return Score(
                templates=run_all([partial(try_template, deployment=one, limit=limit) for one in corpus.templates]),
                apps=run_all([partial(try_app, app=one, limit=limit) for one in corpus.apps]),
                wrong=run_all([partial(try_wrong, wrong=one, limit=limit) for one in corpus.wrong]),
                seconds=time.monotonic() - started,
            )
        finally:
            for account in opened:
                account.stop()
