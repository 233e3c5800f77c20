"""One attempt on this node, from downloading the source to storing the results."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from trainium_wire.formats import now_text
from trainium_wire.job import RESULTS_LOST, RESULTS_LOST_CODE

from . import inputs, preparation, processes, source, stacks
from .checkpoint_download import CheckpointError
from .command import Command, variables
from .compile_caches import CompileCaches
from .end import End
from .failure import Failure, Finder, full_disk
from .file_tree import LinkError, listed
from .launch import Launch
from .logs import Log
from .notices import Notices
from .observed import FrameworkCounters
from .overlay import make_overlay
from .peers import Neighbours, PeerListener, already_succeeded, any_compiles, has_succeeded, notes_on_success
from .periodic_thread import PeriodicThread
from .preparation import PatientStore
from .progress import Compiling, RankProgress
from .results import Results, retry
from .secrets import Secrets
from .store import Store


class _AttemptEndedError(Exception):
    """The attempt has ended while this node was preparing or running its command."""


class NodeAttempt:
    """One attempt on this node. After SIGTERM, `terminated` is set.

    Args:
        launch: The launch.
        store: The folder of all jobs in S3.
        read_secret: Returns the value of a secret by its ARN, or raises OSError.
        why_ended: Returns why a scheduler sent SIGTERM, as result and reason. Default: the node counts as lost.
    """

    def __init__(
        self,
        launch: Launch,
        store: Store,
        read_secret: Callable[[str], str],
        why_ended: Callable[[], tuple[str, str]] | None = None,
    ) -> None:
        self._launch, self._store, self._why_ended = launch, store, why_ended
        self._end = End(launch, store)
        self.log = Log(lambda part, text: store.write_text(launch.keys.log(launch.rank, part), text))
        self._notices, self._neighbours = Notices(launch, store), Neighbours(launch, store)
        self._progress, self._compiling = RankProgress(), Compiling()
        self._observed = FrameworkCounters(launch, self._compiling)
        self._caches = CompileCaches(launch, self.log.say, store.imds)
        wait = launch.timing.results, self.log.say, self._is_ending
        self._secrets = Secrets(launch.spec.secrets, lambda arn: preparation.patiently(lambda: read_secret(arn), *wait))
        self._finder, self._last_life = Finder(), time.monotonic()
        self._phases: dict[str, float] = {}
        self._state, self._final_state, self._left_running = "source", "ended", list[str]()
        self._exit_code: int | None = None
        self._command: Command | None = None
        self.terminated, self._killed_at = False, float("inf")
        self._results = Results(launch, store, self.log)
        self._reporting = PeriodicThread("record", self._report, lambda: launch.timing.report)
        self._venv, self.peer_port = launch.venv, 0
        self._began = self._started = time.monotonic()

    def run(self) -> int:
        """Run the attempt. Returns the exit code of the program."""
        launch = self._launch
        processes.adopt_orphans()
        signal.signal(signal.SIGTERM, self._terminate)
        self.peer_port = PeerListener(launch.nodes[launch.rank]["address"]).port
        self.log.say(f"job {launch.job}, attempt {launch.attempt}: {launch.name} of {len(launch.nodes)}")
        threads = self.periodic_threads()
        for thread in threads:
            thread.start()
        try:
            with contextlib.suppress(_AttemptEndedError):
                self._prepare()
                self._results.outputs.begin()
                self._results.checkpoints.begin_running()
                storing = self._results.periodic_threads()
                if self._caches.is_wanted:
                    storing.append(PeriodicThread("compile cache", self._caches.store, lambda: self._caches.seconds))
                for thread in storing:
                    thread.start()
                threads += storing
                self._compute()
        except (OSError, source.SourceError, inputs.InputError, CheckpointError, LinkError) as error:
            with contextlib.suppress(_AttemptEndedError):
                # The end of the attempt also ends a wait for S3.
                self._raise_if_over()
                self._end.declare("failed", f"{launch.name}: {error}")
        self._finish(threads)
        return RESULTS_LOST_CODE if self._results.lost else int(self._end.content["result"] != "succeeded")

    def periodic_threads(self) -> list[PeriodicThread]:
        """The periodic tasks except those that store results, not started yet."""
        timing = self._launch.timing
        seconds = timing.log_others if self._launch.rank else timing.log
        threads = [
            PeriodicThread("other nodes", self._poll, lambda: timing.poll),
            self._reporting,
            PeriodicThread("log", self.log.send, lambda: seconds),
        ]
        if len(self._launch.nodes) > 1:
            threads.append(PeriodicThread("neighbours", self._test_neighbours, lambda: self._neighbours.seconds))
        return threads

    def _poll(self) -> None:
        self._end.poll()
        if self._end.over.is_set():
            return
        stop = self._store.read(self._launch.job_keys.stop)
        if stop is not None:
            self._end.declare("stopped", str(stop.get("reason") or "trn stop"))
        self._notices.poll()

    def _test_neighbours(self) -> None:
        problem = None if self._end.over.is_set() else self._neighbours.test()
        if problem:
            self._end.declare("node-lost", f"{problem}, according to {self._launch.name}")

    def _report(self) -> None:
        launch = self._launch
        phases = {**self._phases, "checkpoints": self._results.checkpoint_seconds}
        state = self._state
        record: dict[str, Any] = {
            "instance_id": launch.nodes[launch.rank]["instance_id"],
            "state": state,
            "at": now_text(),
            "phases": {name: round(seconds, 3) for name, seconds in phases.items()},
            "progress": self._progress.as_record(),
            "graphs": self._compiling.counts(),
            "utilization": launch.utilization,
            **self._observed.as_record(),
            "compile_caches": self._caches.as_record(has_first_step=self._progress.first is not None),
            "exit_code": self._exit_code,
            "left_running": self._left_running,
            "compiles": state == "running" and processes.compiles(),
            "peer_port": self.peer_port,
            "log_parts": self.log.parts,
            "device_errors": self._end.device_errors() if state == "succeeded" or self._end.over.is_set() else None,
            **self._results.as_record(),
        }
        self._store.write(launch.keys.node(launch.rank), record)

    def _add_line(self, rank: int | None, line: str) -> None:
        line = self._secrets.masked(line)
        self.log.add(rank, line)
        self._compiling.feed(line, rank)
        self._finder.feed(rank, line)
        if not rank:
            self._progress.feed(rank, line)
            if self._progress.first is not None and "first_step" not in self._phases:
                self._phases["first_step"] = self._progress.first - self._started

    def _terminate(self, *_: object) -> None:
        self.terminated = True
        self._killed_at = min(self._killed_at, time.monotonic() + self._launch.timing.terminated)

    @contextlib.contextmanager
    def _phase(self, name: str) -> Generator[None, None, None]:
        if name != self._state:
            self._state = name
            self._reporting.soon()
        start = time.monotonic()
        try:
            yield
        finally:
            self._phases[name] = self._phases.get(name, 0) + time.monotonic() - start

    def _prepare(self) -> None:
        """Prepare all that the command uses. Raises _AttemptEndedError if the attempt ends in the meantime."""
        launch, place = self._launch, self._launch.place
        self._variables = variables(
            spec_environment=launch.spec.environment,
            job=launch.job,
            attempt=launch.attempt,
            nodes=len(launch.nodes),
            rank=launch.rank,
            head=launch.nodes[0]["address"],
            place=place,
        )
        store = PatientStore(self._store, launch.timing.results, self.log.say, self._is_ending)
        with self._phase("source"):
            preparation.download_source(launch, store)
            resumed = self._results.restore(store)
            if resumed:
                self._variables["TRN_RESUME_FROM"] = str(resumed)
                self.log.say(f"continues from checkpoint {launch.resume_from}")
        if launch.spec.inputs:
            with self._phase("inputs"):
                inputs.download(launch.inputs, store, place / "inputs")
        self._raise_if_over()
        self._secrets.fetch()
        if launch.spec.setup:
            with self._phase("setup"):
                overlay = make_overlay(Path(launch.venv), place / "venv") if launch.venv else None
                self._venv = str(overlay) if overlay else launch.venv
                setup = self._start("setup", launch.spec.setup)
                while setup.exit_code is None:
                    self._raise_if_over()
                    setup.wait(self._end.over)
                code = setup.exit_code
                self._raise_if_over(code)
                setup.end(0)
                if code:
                    failure = self._finder.failure(code)
                    raise source.SourceError(f"setup: {failure.sentence}")
        if self._caches.is_wanted:
            # After the setup, because it may install another compiler.
            with self._phase("compile_cache"):
                found = self._caches.prepare(self._variables, self._venv, self._is_ending)
                self._variables = {**found, **self._variables}
        self._raise_if_over()

    def _is_ending(self) -> bool:
        return self.terminated or self._end.over.is_set() or self._is_late()

    def _is_late(self) -> bool:
        """Whether the job has reached its time limit, which includes the preparation. Node 0 decides for all nodes."""
        left = None if self._launch.rank else self._launch.seconds_left
        return left is not None and time.monotonic() - self._began > left

    def _raise_if_over(self, exit_code: int | None = None) -> None:
        if exit_code == -signal.SIGTERM:
            # A scheduler sends SIGTERM to this process, too.
            self._end.over.wait(1)
        if self.terminated:
            self._declare_termination()
        if self._is_late():
            limit = self._launch.spec.time_limit_seconds
            self._end.declare("time-limit", f"the job reached its time limit of {limit} seconds")
        if self._end.over.is_set():
            raise _AttemptEndedError

    def _start(self, name: str, text: str) -> Command:
        self._last_life = time.monotonic()
        self._command = Command(
            text,
            script=self._launch.place / f"{name}.sh",
            folder=self._launch.place / "source",
            variables=self._variables,
            secrets=self._secrets.environment,
            venv=self._venv,
            in_container=self._launch.in_container,
            hidden=self._secrets.hidden,
            sink=self._add_line,
            alive=self._note_life,
        )
        return self._command

    def _note_life(self) -> None:
        self._last_life = time.monotonic()

    def _compute(self) -> None:
        launch = self._launch
        self._finder = Finder()
        stack = launch.spec.stack
        if stack and not launch.venv:
            self.log.say(f"this node has no environment for the stack {stack}: the job uses that of the login shell")
        with self._phase("running"):
            self._started = time.monotonic()
            command = self._start("command", self._observed.command(launch.spec.command))
            while command.exit_code is None:
                self._raise_if_over()
                self._check_output()
                command.wait(self._end.over)
            self._raise_if_over(command.exit_code)
            self._exit_code = command.exit_code
            self._left_running = [] if self._exit_code else processes.left_running()
            if self._left_running:
                self.log.say(f"processes that the command left running are killed: {listed(self._left_running)}")
            command.end(0)
            self._results.end_running(self._exit_code)
        self.log.say(f"the command ended with exit code {self._exit_code} on {launch.name}")
        if self._is_interrupted():
            self._declare_interruption()
        elif self._exit_code:
            self._final_state = "failed"
            self._declare_failure(self._finder.failure(self._exit_code))
        else:
            # First, because once all nodes have reported success, the job ends and the cluster may be deleted.
            self._store_results(self._end.over.is_set)
            if not self._declare_lost_results():
                self._state = self._final_state = "succeeded"
                self._reporting.soon()
                self._wait_for_others()

    def _declare_lost_results(self) -> bool:
        if self._results.lost and not self._end.over.is_set():
            self._final_state = RESULTS_LOST
            self._end.declare(RESULTS_LOST, f"{self._launch.name}: {self._results.lost}", exit_code=0)
        return bool(self._results.lost)

    def _check_output(self) -> None:
        """Node 0 decides for all nodes whether the job hangs."""
        launch = self._launch
        if launch.rank:
            return
        limit, quiet_seconds = launch.spec.hang_seconds, time.monotonic() - self._last_life
        if limit and quiet_seconds > limit:
            if processes.compiles() or any_compiles(launch, self._store):
                self._note_life()
            else:
                ended = already_succeeded(launch, self._store)
                self._end.declare("hung", f"no output from node 0 for {limit} seconds; no compiler is running{ended}")

    def _wait_for_others(self) -> None:
        """Node 0 ends the attempt as succeeded when every node has succeeded; the others wait for this end."""
        timing, soon = self._launch.timing, time.monotonic() + self._launch.timing.soon
        pending = [-1] if self._launch.rank else list(range(1, len(self._launch.nodes)))
        while not self._end.over.is_set():
            if self.terminated:
                self._declare_termination()
            pending = [rank for rank in pending if rank < 0 or not has_succeeded(self._launch, self._store, rank)]
            if not pending:
                self._results.complete_checkpoints()
                if not self._declare_lost_results():
                    own = {"left_running": self._left_running, "device_errors": self._end.device_errors()}
                    notes = self._results.incomplete, notes_on_success(self._launch, self._store, own)
                    self._end.declare("succeeded", "; ".join(filter(None, notes)), exit_code=0)
            self._end.wait(timing.poll if self._launch.rank and time.monotonic() > soon else timing.others)

    def _is_interrupted(self) -> bool:
        """Whether the attempt ends because a node will be interrupted."""
        may_be = self._finder.failure(self._exit_code or 0).may_be_a_consequence
        return self._notices.end_attempt(
            self._exit_code, is_lost=self.terminated and not self._why_ended, may_be_a_consequence=may_be
        )

    def _declare_interruption(self) -> None:
        self._end.declare("interrupted", self._notices.reason)

    def _declare_termination(self) -> None:
        if self._is_interrupted():
            self._declare_interruption()
        else:
            unknown = "node-lost", f"{self._launch.name} ended the job's processes: is it shutting down?"
            self._end.declare(*(self._why_ended() if self._why_ended else unknown))

    def _declare_failure(self, failure: Failure) -> None:
        launch = self._launch
        with contextlib.suppress(OSError):
            self._end.poll()
        for _ in range(2):
            # An apparent error of the script may be caused by the loss of another node.
            if len(launch.nodes) > 1 and not self._end.over.is_set():
                self._test_neighbours()
        if failure.may_be_a_consequence and len(launch.nodes) > 1:
            self._end.over.wait(launch.timing.give_way)
        where = launch.name if failure.rank is None else f"rank {failure.rank} on {launch.name}"
        self._end.declare(
            "failed",
            f"{where}: {failure.sentence}{full_disk(launch.place)}",
            rank=failure.rank,
            exit_code=failure.exit_code,
            traceback=failure.traceback,
        )

    def _finish(self, threads: list[PeriodicThread]) -> None:
        """End remaining processes, and store the remaining results, checkpoints first."""
        launch, command, result = self._launch, self._command, self._end.content["result"]
        self.log.say(f"attempt {launch.attempt}: {result}")
        if command:
            if command.exit_code is None:
                if result == "hung":
                    stacks.print_stacks(self.log.say, lambda: command.exit_code is not None, launch.timing.stacks)
                self._state = "ending"
            command.end(launch.timing.grace)
            self._results.end_running(command.exit_code)
        if self._end.content["node"] == launch.rank and result == "failed":
            self._final_state = "failed"
        for thread in threads:
            thread.stop()
        if self._final_state not in ("succeeded", RESULTS_LOST):
            self._store_results(lambda: False)
            # A lost node stores no part; the others store theirs soon.
            seconds = launch.timing.peers if result == "node-lost" else launch.timing.parts
            self._results.checkpoints.await_parts(seconds, lambda: time.monotonic() > self._killed_at)
        self._state = self._final_state
        retry("log", self.log.send, self.log.say)
        retry("record", self._report, self.log.say)

    def _store_results(self, is_cancelled: Callable[[], bool]) -> None:
        """Store the remaining checkpoints, outputs, log and compiled graphs."""
        with self._phase("results"):
            self._results.store(lambda: time.monotonic() > self._killed_at or is_cancelled())
            self._caches.store(settled=self._exit_code == 0)
