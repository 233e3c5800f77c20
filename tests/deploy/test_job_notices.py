"""The end of a job reaches the topic of a deployed cluster, with the permissions of the controller enforced."""

import json
from collections.abc import Callable
from pathlib import Path

from tests.constructs.synth import cluster_template
from tests.deploy.account import Account, outputs
from tests.deploy.command import run_trn
from tests.deploy.test_sleep_and_wake import OPTIONS
from tools.lab.waiting import wait_for
from trainium_local.server import Settings

JOB = """
name = 'hello'
command = 'echo no data; exit 3'
"""


def test_end_of_a_job_is_published_once(start_account: Callable[[Settings], Account], tmp_path: Path) -> None:
    account = start_account(Settings(iam="enforced"))
    account.deploy(cluster_template(job_notices=True, notify_email="someone@example.com"))
    sqs, found = account.aws.client("sqs"), outputs(account.cluster())
    queue = sqs.create_queue(QueueName="notices")["QueueUrl"]
    arn = f"arn:aws:sqs:{account.aws.region}:123456789012:notices"
    account.aws.client("sns").subscribe(TopicArn=found["Notices"], Protocol="sqs", Endpoint=arn)
    (tmp_path / "job.toml").write_text(JOB)
    ran = run_trn(account, "run", *OPTIONS, "job.toml", folder=tmp_path)
    assert "exit code 3" in ran.printed
    # The controller publishes the notice after the command has ended.
    (received,) = wait_for("the notice", lambda: sqs.receive_message(QueueUrl=queue).get("Messages"))
    message = json.loads(received["Body"])
    job = message["Subject"].rpartition(" ")[2]
    assert message["Subject"] == f"trn-pilot: failed: {job}"
    assert "Reason: " in message["Message"]
    assert f"trn logs {job} --cluster trn-pilot --region {account.aws.region}\n" in message["Message"]
    (controller,) = [name for name in account.cluster().ids("AWS::Lambda::Function") if "Controller" in name]
    again = {"source": "aws.s3", "detail": {"object": {"key": f"jobs/{job}/end.json"}}}
    answer = account.aws.client("lambda").invoke(FunctionName=controller, Payload=json.dumps(again))
    assert "FunctionError" not in answer, answer["Payload"].read()
    sqs.delete_message(QueueUrl=queue, ReceiptHandle=received["ReceiptHandle"])
    assert "Messages" not in sqs.receive_message(QueueUrl=queue)
