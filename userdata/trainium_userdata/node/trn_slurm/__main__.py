"""The command trn-slurm."""

from __future__ import annotations

import argparse
import os
import sys

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
    of_node = commands.add_parser(
        "task", help="print what `address` prints, read the number of the attempt, and run this node's part"
    )
    of_node.add_argument("job")
    follow = commands.add_parser(
        "follow",
        help="start the tasks, begin the next attempt of a job, wait for its end, and requeue the job or end it",
    )
    follow.add_argument("job")
    follow.add_argument("srun", nargs=argparse.REMAINDER, help="the command that runs the tasks")
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
        print(node.address(), flush=True)
    except OSError as error:
        print(f"trn-slurm address: {error}", file=sys.stderr)
        return 1
    return 0


def run(options: argparse.Namespace) -> int:
    """Run a command about a job."""
    if options.command == "task" and print_address():
        return 1
    # The imports take as long as the other nodes need to start.
    from trn_job.__main__ import RETRIES
    from trn_job.scheduled_attempts import BegunElsewhereError, OverError
    from trn_node.objects import Objects

    from .attempts import Attempts

    try:
        if options.command == "task":
            from . import task

            number = sys.stdin.readline()
            if not number:
                return 1  # the attempt was not begun
            # srun passes standard output to the batch script, which reads only the addresses.
            os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
            return task.run(Attempts(options.job, Objects(retries=RETRIES)), int(number))
        from .follower import Follower

        with Follower(options.srun) as follower:
            return follower.run(Attempts(options.job, Objects(retries=RETRIES)))
    except OverError as over:
        print(f"trn-slurm: job {options.job} is over: {over}", file=sys.stderr)
        error = slurm.cancel() if over.is_stopped else ""
        if error:
            print(f"trn-slurm: {error}", file=sys.stderr)
        return over.exit_code or 1
    except (BegunElsewhereError, OSError, ValueError, LookupError) as error:
        print(f"trn-slurm {options.command}: {type(error).__name__}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
