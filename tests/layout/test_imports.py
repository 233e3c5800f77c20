"""Imports point downwards only, and each outside library is known to the floors that need it alone."""

import ast
from pathlib import Path

import pytest

from tests.layout.repository import PACKAGE_OF, ROOT, python_files

BELOW: dict[str, set[str]] = {
    "runtime": set(),
    "core": {"trainium_runtime"},
    "userdata": {"trainium_runtime", "trainium_core"},
    "constructs": {"trainium_runtime", "trainium_core", "trainium_userdata"},
    "local": set(),
    "local_plugin": {"trainium_runtime", "trainium_core", "trainium_local"},
    "cli": {"trainium_runtime", "trainium_core", "trainium_userdata", "trainium_local", "trainium_local_plugin"},
    "stacks": {"trainium_runtime", "trainium_core", "trainium_userdata", "trainium_cdk"},
    "app.py": {"trainium_runtime", "trainium_core", "trainium_userdata", "trainium_cdk", "stacks"},
    "demo": {"trainium_runtime", "trainium_core", "trainium_local", "trainium_cli"},
    "bench": {"trainium_runtime", "trainium_core", "trainium_local", "trainium_cli", "demo"},
    "lab": {"trainium_runtime", "trainium_core", "trainium_userdata", "trainium_local", "trainium_local_plugin"},
    "security": {"trainium_local"},
}
"""What each floor may import of ours, besides itself."""

OURS = {*PACKAGE_OF.values(), "stacks", "app", "scripts", "demo", "bench", "lab", "security", "tests"}

CDK = {"aws_cdk", "cdk_nag", "constructs", "jsii"}
AWS_API = {"boto3", "botocore"}
EMULATOR = {"moto"}

LIBRARIES: dict[str, set[str]] = {
    "runtime": AWS_API,
    "core": set(),
    "core/trainium_core/adapters": AWS_API,
    "userdata": set(),
    "constructs": CDK,
    "local": AWS_API | EMULATOR,
    "local_plugin": AWS_API | EMULATOR,
    "cli": AWS_API,
    "stacks": CDK,
    "app.py": CDK,
    "demo": AWS_API,
    "bench": AWS_API,
    "bench/smallest_app.py": CDK,
    "lab": AWS_API,
    "lab/stand_ins": set(),
    "security": AWS_API | EMULATOR,
}
"""Which of the guarded libraries a folder may import; the deepest folder that holds a file decides."""


def imported(source: str) -> set[str]:
    """Top-level names of all absolute imports, those inside functions and TYPE_CHECKING blocks included."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module.split(".")[0])
    return names


def forbidden(file: Path, source: str) -> set[str]:
    """The imports of a file that its place does not allow."""
    floor = file.parts[0]
    own = PACKAGE_OF.get(floor, floor)
    folder = max((name for name in LIBRARIES if file.is_relative_to(name)), key=len)
    guarded = (OURS - BELOW[floor] - {own}) | ((CDK | AWS_API | EMULATOR) - LIBRARIES[folder])
    return imported(source) & guarded


FLOOR_FILES = [file for file in python_files() if file.parts[0] in BELOW]


@pytest.mark.parametrize("file", FLOOR_FILES, ids=str)
def test_a_module_imports_only_what_its_floor_may_know(file: Path) -> None:
    assert forbidden(file, (ROOT / file).read_text()) == set()


def test_nothing_but_tests_imports_tests() -> None:
    others = [file for file in python_files() if file.parts[0] != "tests"]
    assert [str(file) for file in others if "tests" in imported((ROOT / file).read_text())] == []


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("core/trainium_core/plan/plan.py", "from trainium_cdk import network"),
        ("core/trainium_core/plan/plan.py", "import boto3"),
        ("constructs/trainium_cdk/network.py", "def look():\n    import boto3"),
        ("runtime/trainium_runtime/handlers/gate.py", "import aws_cdk"),
        ("runtime/trainium_runtime/roster.py", "from trainium_core import plan"),
        ("userdata/trainium_userdata/render.py", "import trainium_local"),
        ("local/trainium_local/server.py", "from trainium_core.facts import facts"),
        ("local/trainium_local/server.py", "from trainium_local_plugin import account"),
        ("cli/trainium_cli/main.py", "import aws_cdk.aws_ec2"),
        ("cli/trainium_cli/main.py", "from trainium_cdk.network import Network"),
        ("stacks/cluster.py", "from tests import samples"),
        ("app.py", "import botocore.session"),
    ],
)
def test_the_guard_bites(file: str, source: str) -> None:
    assert forbidden(Path(file), source)


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("core/trainium_core/adapters/quotas.py", "import boto3"),
        ("runtime/trainium_runtime/handlers/gate.py", "import boto3"),
        ("constructs/trainium_cdk/network.py", "from trainium_core import plan\nfrom aws_cdk import Stack"),
        ("local/trainium_local/server.py", "from . import cloudformation\nimport moto.ec2"),
        ("app.py", "from stacks import cluster"),
    ],
)
def test_the_guard_lets_the_right_imports_pass(file: str, source: str) -> None:
    assert forbidden(Path(file), source) == set()
