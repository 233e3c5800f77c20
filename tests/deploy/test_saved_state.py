"""A cluster that outlives its embedded AWS: saved, loaded into another start, found as it was, and destroyed."""

from collections.abc import Callable
from pathlib import Path

from tests.constructs.synth import cluster_template
from tests.deploy.account import Account, differences
from tests.local.conftest import EmbeddedAws
from trainium_cli import local_state
from trainium_local.server import Settings


def test_a_cluster_is_what_it_was_after_another_start(
    start_account: Callable[[Settings], Account],
    start_embedded_aws: Callable[[Settings], EmbeddedAws],
    tmp_path: Path,
) -> None:
    old, template, file = start_account(Settings()), cluster_template(nodes=1), tmp_path / "state"
    empty = old.inventory()
    old.cdk_deploy(template)
    local_state.save(file, tmp_path, old.aws.connection)
    aws = start_embedded_aws(Settings())
    local_state.read(file, tmp_path).load(aws.connection)

    new = Account(aws=aws, folder=tmp_path)
    assert differences(old.inventory(), new.inventory()) == []
    assert "no changes" in new.cdk_deploy(template).printed
    new.cdk_destroy(template)
    assert differences(empty, new.inventory()) == []
