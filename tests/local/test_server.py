"""The server as a whole: its address, its account, unsupported actions, and its table of replaced moto symbols."""

import subprocess
import sys
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from tests.local.conftest import EmbeddedAws


def test_server_listens_on_one_ipv4_address_127_0_0_1(embedded_aws: EmbeddedAws) -> None:
    port = int(embedded_aws.endpoint.rsplit(":", 1)[1])
    sockets = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    listening = {local for _, local, _, state, *_ in sockets if state == "0A"}
    assert {address for address in listening if address.endswith(f":{port:04X}")} == {f"0100007F:{port:04X}"}


def test_settings_of_caller_do_not_change_the_account(chosen_aws: EmbeddedAws) -> None:
    assert chosen_aws.client("sts").get_caller_identity()["Account"] == "123456789012"


@pytest.mark.parametrize(("service", "action"), [("sagemaker", "list_spaces"), ("cloudformation", "list_stack_sets")])
def test_unsupported_action_is_refused_with_501_and_not_retried(
    embedded_aws: EmbeddedAws, service: str, action: str
) -> None:
    refused: pytest.ExceptionInfo[ClientError]
    with pytest.raises(ClientError, match="The embedded AWS does not support List") as refused:
        getattr(embedded_aws.client(service), action)()
    metadata = refused.value.response["ResponseMetadata"]
    assert (metadata["HTTPStatusCode"], metadata["RetryAttempts"]) == (501, 0)


# In a separate process: importing the table imports moto's modules, and installing it changes moto.
INSPECT = """
from trainium_local.services import install, replacements
rows = replacements()
missing = [f"{r.owner.__name__}.{r.name}" for r in rows if "absent" not in r.why and not hasattr(r.owner, r.name)]
present = [f"{r.owner.__name__}.{r.name}" for r in rows if r.why == "absent" and hasattr(r.owner, r.name)]
twice = len({(r.owner, r.name) for r in rows}) < len(rows)
install(endpoint="http://127.0.0.1:1")
wrong = [r.name for r in rows if r.owner.__dict__[r.name] is not r.by]
print(missing, present, twice, wrong)
"""


def test_replaced_symbols_exist_in_moto_and_added_ones_do_not() -> None:
    printed = subprocess.run([sys.executable, "-c", INSPECT], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[] [] False []"
