"""`import trainium_cdk` imports nothing of the command line."""

import json
import subprocess
import sys

COMMAND_LINE = {"boto3", "botocore", "click", "jmespath", "rich", "trainium_cli"}


def test_constructs_import_nothing_of_the_command_line() -> None:
    script = "import json, sys, trainium_cdk; print(json.dumps(sorted(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert {one.split(".")[0] for one in json.loads(ran.stdout)} & COMMAND_LINE == set()
