"""examples/lm as a job on EKS: in two pods as processes, with the rendered environment."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.container import TORCH_PYTHON, free_port
from tests.examples.test_lm import OPTIONS, SCRIPT, SEQUENCES, lm
from tests.examples.training_job import PROGRESS
from tests.userdata.aws_stand_in import AwsStandIn
from tests.userdata.plans import plan_for
from tests.userdata.pods import Pods

STEPS = 20


@pytest.fixture
def pods(tmp_path: Path) -> Iterator[Pods]:
    plan = plan_for("trn1.32xlarge", nodes=2, stacks=("eks",), eks_cluster="prod")
    with AwsStandIn(region=plan.region) as aws:
        made = Pods(tmp_path / "pods", plan, aws, TORCH_PYTHON)
        yield made
        made.close()


def test_job_on_eks_computes_the_losses_of_one_process(pods: Pods, tmp_path: Path) -> None:
    alone = lm(tmp_path / "alone").run(steps=STEPS)
    assert alone.codes == [0], alone.outputs
    options = {"steps": STEPS, "batch": SEQUENCES // 2, **OPTIONS}
    torchrun = (
        f"python -m torch.distributed.run --nnodes=$TRN_NODES --node_rank=$TRN_NODE_RANK --nproc_per_node=1 "
        f"--master_addr=$HEAD_NODE --master_port={free_port()} train.py "
        + " ".join(f"--{name} {value}" for name, value in options.items())
    )
    files = {file.name: file.read_text() for file in SCRIPT.parent.iterdir() if file.suffix in (".py", ".txt")}
    pods.submit(files, command=torchrun, environment={"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"})
    pods.start()
    assert pods.wait() == [0, 0], [pods.output(0), pods.output(1), pods.log(), pods.log(rank=1)]
    losses = {int(step): loss for step, loss, *_ in PROGRESS.findall(pods.log().replace("[rank 0] ", ""))}
    assert [*losses] == [*range(1, STEPS + 1)]
    assert float(losses[STEPS]) == pytest.approx(float(alone.losses[STEPS]), abs=1e-4)
    assert any(key.endswith("/outputs/model.pt") for key in pods.aws.records)
