"""make demo: deploys TrnClusterStack with the real CDK CLI to an embedded AWS, shows it, and destroys it completely."""

import signal
import sys
import time
from pathlib import Path

from tools.demo.commands import CommandFailedError, Commands
from tools.demo.deployed_cluster import DeployedCluster
from tools.demo.inventory import take_inventory
from tools.demo.private_aws import private_aws
from tools.demo.proof import AccountChangedError, refuse_unless_equal, show_counts
from tools.demo.tour import show_cluster
from trainium_cli.exit_codes import ExitCode
from trainium_cli.terminal import Screen, console
from trainium_core import Plan, PlanError
from trainium_core.engines.ec2.engine import EC2
from trainium_core.naming import BOOTSTRAP_STACK_NAME, STACK_NAME
from trainium_core.plan.context import plan_from_cdk
from trainium_local.environment import ACCOUNT_ID, NotTheEmbeddedAwsError
from trainium_local.lifecycle import LocalError

PROJECT = Path(__file__).parents[2]
SHOWN = (
    "Shown: the AWS CDK CLI deploys this plan to an empty account, waits for every node, and destroys the cluster, "
    "leaving nothing.\n"
    "Not shown: that AWS has the capacity, that your permissions and quotas suffice, that an image boots, that Neuron "
    "and EFA work. Nothing ran on the instances. docs/project/embedded-aws.md has the whole list."
)


def main() -> int:
    # Commands write to the same pipe, so each line must be written before they start.
    sys.stdout.reconfigure(line_buffering=True)  # pyright: ignore[reportAttributeAccessIssue]
    # Clean up after these signals too, as after Ctrl-C.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    started = time.monotonic()
    terminal = console()
    try:
        plan = plan_from_cdk(PROJECT)
        resources = Demo(terminal, plan).run()
    except PlanError as error:
        return _fail(f"{error}\nmake demo: the plan in cdk.json cannot be deployed; nothing was started")
    except KeyboardInterrupt:
        return _fail("\nmake demo: interrupted; the embedded AWS is stopped, and its content deleted", code=130)
    except LocalError as error:  # The embedded AWS did not start, or did not stop.
        return _fail(f"\n{error}\nmake demo: failed")
    except (CommandFailedError, NotTheEmbeddedAwsError, AccountChangedError) as error:
        return _fail(f"\n{error}\nmake demo: failed; the embedded AWS is stopped, and its content deleted")
    terminal.print(f"\n{SHOWN}")
    built = f"{STACK_NAME} ({resources} resources, {plan.nodes} x {plan.instance_type})"
    took = f"{time.monotonic() - started:.0f} s"
    ending = f"make demo: {built} was built, shown and destroyed, with nothing left, in {took}"
    print(ending)  # One line, wrapped by the terminal.
    return 0


class Demo:
    """The steps, in order."""

    def __init__(self, terminal: Screen, plan: Plan) -> None:
        self._terminal = terminal
        self._plan = plan
        self._step = 0

    def run(self) -> int:
        """Run all steps. Returns the number of resources in the stack."""
        commands = Commands(self._terminal)
        self._print_text(
            f"The cluster of cdk.json, {self._plan.nodes} x {self._plan.instance_type}, is deployed to an embedded "
            "AWS on this machine, shown and destroyed. No account, no cost. A line that begins with $ is what you "
            "would type."
        )
        self._title("Start the embedded AWS")
        with private_aws(PROJECT, self._plan.region) as aws:
            self._print_text(
                f"It answers at {aws.endpoint} as account {ACCOUNT_ID}, region {aws.region}. The following commands "
                "reach only this address and see none of your AWS settings."
            )
            moments = {"fresh": take_inventory(aws.client)}

            self._title("Preflight: check the plan of cdk.json, then ask the account")
            commands.trn("plan")
            if commands.trn("preflight", codes=(ExitCode.OK, ExitCode.NOT_READY)) == ExitCode.NOT_READY:
                self._print_text("Each missing item is shown with its fix. The next step is such a fix.")

            self._title("Bootstrap: what the CDK needs in every account, once")
            # Run from a folder without an app, which the CLI would synthesise needlessly.
            commands.cdk("bootstrap", f"aws://{ACCOUNT_ID}/{aws.region}", cwd=aws.folder)
            moments["bootstrapped"] = take_inventory(aws.client)
            commands.trn_last_line("preflight")

            self._title("Deploy")
            assembly = str(aws.folder / "cdk.out")
            quiet_options = ("--require-approval", "never", "--output", assembly)
            commands.cdk("deploy", STACK_NAME, quiet_options=quiet_options, cwd=PROJECT)
            moments["deployed"] = take_inventory(aws.client)

            self._title("Look at what exists now, as the services themselves list it")
            cluster = DeployedCluster(aws.client, self._plan.stack_names[EC2.key])
            show_cluster(self._terminal, cluster)
            self._print_text("\nNothing runs on these instances: the embedded AWS wrote the reports on their behalf.")

            self._title("Run a job on its nodes")
            self._print_text(
                "On AWS each node runs its part. Here the nodes' own program runs as processes of this machine."
            )
            commands.trn("run", "tools/demo/job/job.toml", cwd=PROJECT)

            self._title("Destroy")
            # Use the deployed assembly instead of synthesising it again.
            commands.cdk("destroy", STACK_NAME, quiet_options=("--force", "--app", assembly), cwd=PROJECT)

            self._title("Prove the deletion: with the audit of `trn`, then by counting the resources of the account")
            commands.trn_last_line("audit", quiet_options=("--folder", str(aws.folder)))
            self._print_text("")
            moments["destroyed"] = take_inventory(aws.client)
            show_counts(self._terminal, moments)
            (uploads,) = DeployedCluster(aws.client, BOOTSTRAP_STACK_NAME).ids("AWS::S3::Bucket")
            uploaded = refuse_unless_equal(moments["bootstrapped"], moments["destroyed"], uploads=uploads)
            self._print_text(
                f"Compared by ID: what {STACK_NAME} created was deleted, and nothing else. "
                f"{BOOTSTRAP_STACK_NAME} stays, as on AWS, for other apps of the account, with the {uploaded} files "
                "that the CDK uploaded to its bucket."
            )
        return len(cluster.resources)

    def _title(self, title: str) -> None:
        self._step += 1
        self._terminal.print(f"\n{self._step}. {title}", style="bold green")

    def _print_text(self, text: str) -> None:
        self._terminal.print(text)


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _fail(message: str, *, code: int = 1) -> int:
    print(message, file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
