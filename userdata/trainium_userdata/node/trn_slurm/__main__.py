"""The command trn-slurm."""

from __future__ import annotations

import argparse
import os
import sys
import time

from . import node, slurm


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="trn-slurm", description="Run and check jobs on this Slurm node.")
    commands = top.add_subparsers(dest="command", required=True)
    commands.add_parser("remember", help="store the error counters of a verified node, for the epilog")
    commands.add_parser("epilog", help="check the node after a job, and drain it if it is unhealthy")
    commands.add_parser("drain", help="drain the node if it has failed or ends soon; run by the node's watch")
    commands.add_parser(
        "address", help="in a task: print the rank of this node in the allocation, its instance ID and address"
    )
    begin = commands.add_parser(
        "begin", help="read what `address` prints in all tasks, begin the next attempt of a job, and print its number"
    )
    begin.add_argument("job")
    of_node = commands.add_parser("task", help="run this node's part of the attempt with the number TRN_ATTEMPT")
    of_node.add_argument("job")
    follow = commands.add_parser("follow", help="wait for srun, and requeue the job or end it")
    follow.add_argument("job")
    follow.add_argument("srun", type=int, help="process ID of srun, a child of this process")
    return top


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    # Each command imports only what it uses: imports take most of the time of short commands.
    if options.command in ("remember", "epilog"):
        from . import epilog

        return epilog.main() if options.command == "epilog" else epilog.remember()
    if options.command == "drain":
        return node.drain(node.known_problems())
    if options.command == "address":
        return print_address()
    return run(options)


def print_address() -> int:
    try:
        print(node.address())
    except OSError as error:
        print(f"trn-slurm address: {error}", file=sys.stderr)
        return 1
    return 0


def run(options: argparse.Namespace) -> int:
    """Run a command about a job."""
    from trn_job.__main__ import RETRIES
    from trn_job.scheduled_attempts import OverError
    from trn_node.objects import Objects

    from .attempts import Attempts, parse_nodes

    try:
        attempts = Attempts(options.job, Objects(retries=RETRIES))
        if options.command == "begin":
            nodes, problems = parse_nodes(sys.stdin.read())
            if problems and attempts.spec.retries and move_elsewhere(problems):
                return 1
            print(attempts.begin(nodes))
            return 0
        number = int(os.environ["TRN_ATTEMPT"])
        if options.command == "task":
            from . import task

            return task.run(attempts, number)
        from .follower import Follower

        return Follower(attempts, number, options.srun).run()
    except OverError as over:
        print(f"trn-slurm: job {options.job} is over: {over}", file=sys.stderr)
        error = slurm.cancel() if over.is_stopped else ""
        if error:
            print(f"trn-slurm: {error}", file=sys.stderr)
        return over.exit_code or 1
    except (OSError, ValueError, LookupError) as error:
        print(f"trn-slurm {options.command}: {type(error).__name__}: {error}", file=sys.stderr)
        return 1


def move_elsewhere(problems: dict[str, str]) -> bool:
    """Have Slurm start the job on other nodes, without an attempt on these. Returns whether Slurm accepted it.

    The watch or the epilog drains the nodes with problems, so that Slurm does not choose them again.
    """
    from .follower import REFUSED_SECONDS, REQUEUED_SECONDS

    named = "; ".join(f"{instance}: {problem}" for instance, problem in problems.items())
    print(f"trn-slurm: requeuing the job, because a node ends or has failed: {named}", file=sys.stderr, flush=True)
    error = slurm.requeue()
    if error:
        print(f"trn-slurm: {error}", file=sys.stderr)
    # Slurm ends this process. It may also have carried out a request that failed.
    time.sleep(REFUSED_SECONDS if error else REQUEUED_SECONDS)
    return not error


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
