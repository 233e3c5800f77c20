"""Templates of what stands beside a cluster, `templates/*.yaml`: each deploys, updates and goes, and leaves nothing."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.local.conftest import EmbeddedAws
from trainium_cli.score.account import Account, Server
from trainium_cli.score.corpus import Deployment, read_corpus
from trainium_cli.score.inventory import inventory
from trainium_cli.score.outcome import Outcome
from trainium_cli.score.trials import go_through

DEPLOYMENTS = read_corpus(Path(__file__).parent / "templates").templates

LIMIT_SECONDS = 60
THREADS = 4


@dataclass(frozen=True, kw_only=True)
class Run:
    """outcomes by the names of the templates, and what all of them together have left."""

    outcomes: dict[str, Outcome]
    left_behind: set[str]
    internal_errors: int


@pytest.fixture(scope="module")
def run(embedded_aws: EmbeddedAws) -> Run:
    """All templates on one server."""
    server = Server(connection=embedded_aws.connection, log=embedded_aws.log, created=None, stop=lambda: None)
    account = Account(lambda _: server)
    before, errors_before = inventory(account.client), account.internal_errors()

    def outcome(deployment: Deployment) -> tuple[str, Outcome]:
        came = Outcome(name=deployment.name)
        go_through(account, deployment, came, limit=LIMIT_SECONDS)
        return deployment.name, came

    with ThreadPoolExecutor(THREADS) as pool:
        outcomes = dict(pool.map(outcome, DEPLOYMENTS))
    left_behind, errors = inventory(account.client) - before, account.internal_errors() - errors_before
    return Run(outcomes=outcomes, left_behind=left_behind, internal_errors=errors)


@pytest.mark.parametrize("name", [one.name for one in DEPLOYMENTS])
def test_a_template_deploys_updates_and_goes(name: str, run: Run) -> None:
    outcome = run.outcomes[name]
    assert outcome.reason == ""
    assert (outcome.deployed, outcome.updated, outcome.deleted) == (True, True, True)


def test_nothing_is_left_behind(run: Run) -> None:
    assert run.left_behind == set()


def test_no_request_is_answered_with_a_500(run: Run) -> None:
    assert run.internal_errors == 0


def test_what_is_left_behind_is_seen(embedded_aws: EmbeddedAws) -> None:
    before, queues = inventory(embedded_aws.client), embedded_aws.client("sqs")
    url = queues.create_queue(QueueName="left-behind")["QueueUrl"]
    try:
        assert inventory(embedded_aws.client) - before == {f"sqs {url}"}
    finally:
        queues.delete_queue(QueueUrl=url)


def test_every_file_is_a_template_that_needs_nothing_else() -> None:
    assert {one.name for one in DEPLOYMENTS} == {path.name for path in (Path(__file__).parent / "templates").iterdir()}
