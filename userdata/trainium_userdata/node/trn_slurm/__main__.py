"""The command trn-slurm."""

from __future__ import annotations

import argparse
import sys

from . import epilog


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="trn-slurm", description="A node of Slurm in an AWS Trainium cluster.")
    commands = top.add_subparsers(dest="command", required=True)
    commands.add_parser("remember", help="store the error counters of a proven node, for the epilog")
    commands.add_parser("epilog", help="check the node after a job, and drain it if it is unhealthy")
    return top


def main(arguments: list[str]) -> int:
    given = parser().parse_args(arguments)
    if given.command == "remember":
        epilog.remember()
        return 0
    return epilog.main()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
