"""The command trn-node."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys

from trainium_wire.formats import now_text

from . import files


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="trn-node", description="Check this node of a Trainium cluster.")
    commands = top.add_subparsers(dest="command", required=True)
    status = commands.add_parser("status", help="show identity and state")
    status.add_argument("--json", action="store_true")
    verify = commands.add_parser("verify", help="check the node against its plan, and report the outcome")
    verify.add_argument("--last", action="store_true", help="the driver was already reloaded")
    verify.add_argument("--hold", action="store_true", help="do not send the record of a verified node yet")
    report = commands.add_parser("report", help="send the record, as it is or as failed")
    report.add_argument("state", nargs="?", choices=["failed"])
    report.add_argument("reason", nargs="?", default="")
    commands.add_parser("collectives", help="test an all-reduce within this node with nccom-test or nccl-tests")
    commands.add_parser("framework", help="print the folder of the framework's environment")
    commands.add_parser("cache-url", help="print the URL of PyTorch/XLA's compile cache outside of jobs")
    commands.add_parser("watch", help="watch this node; run by its service")
    commands.add_parser("internode", help="take part in the test over all nodes; run by the watch")
    return top


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    if options.command == "status":
        return show_status(as_json=options.json)
    if options.command == "collectives":
        return test_collectives()
    if options.command == "framework":
        return show_framework()
    if options.command == "cache-url":
        return show_cache_url()
    if os.geteuid() and not os.environ.get("ROOT"):
        print(f"trn-node {options.command}: requires root; use sudo", file=sys.stderr)
        return 2
    if options.command == "verify":
        return verify(last=options.last, hold=options.hold)
    if options.command == "report":
        return send_report(options.state or "", options.reason)
    if options.command == "internode":
        from . import internode_rounds

        # Unwind the stack, which ends the test's processes.
        signal.signal(signal.SIGTERM, _unwind)
        internode_rounds.main()
        return 0
    from . import watch

    watch.main()
    return 0


def _unwind(*_: object) -> None:
    sys.exit(143)


def show_status(*, as_json: bool) -> int:
    from . import status

    found = status.facts()
    print(json.dumps(found, indent=2) if as_json else status.table(found))
    return 0 if found["record"] and found["record"]["state"] != "failed" else 1


def test_collectives() -> int:
    from . import collectives, gpu

    try:
        plan = files.plan()
        if plan.get("gpus"):
            check = gpu.check_collectives(plan)
        else:
            check = collectives.check_collectives(plan, plan["neuron_cores"])
    except (OSError, ValueError, LookupError) as error:
        print(f"trn-node collectives: {error}", file=sys.stderr)
        return 1
    print(check.found)
    return 0 if check.ok else 1


def show_framework() -> int:
    from . import self_test

    try:
        found = self_test.framework_python(files.plan())
    except (OSError, ValueError) as error:
        print(f"trn-node framework: {error}", file=sys.stderr)
        return 1
    if found:
        print(found[1].parent.parent)
    return 0


def show_cache_url() -> int:
    from . import job_cache

    try:
        print(job_cache.direct_url())
    except (OSError, ValueError, LookupError) as error:
        print(f"trn-node cache-url: {error}", file=sys.stderr)
        return 1
    return 0


def verify(*, last: bool, hold: bool) -> int:
    from . import verify as verification

    try:
        return verification.verify(last=last, hold=hold)
    except verification.BusyError as error:
        print(f"trn-node verify: nothing was verified: {error}", file=sys.stderr)
        return verification.BUSY
    except Exception as error:
        # Not 1, which means that a failure was reported.
        print(f"trn-node verify: nothing was reported: {type(error).__name__}: {error}", file=sys.stderr)
        return verification.ABORTED


def send_report(state: str, reason: str) -> int:
    from . import record
    from .imds import Imds

    imds = Imds()
    made = record.read() or record.make("failed", [], imds)
    if state:
        made.update(state=state, reason=reason, time=now_text())
        return 0 if record.report(made, imds) else 1
    if made["state"] == "failed" and not made["reason"]:
        made["reason"] = "the node was not verified"
    return 0 if record.report(made, imds) == "s3" and made["state"] != "failed" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
