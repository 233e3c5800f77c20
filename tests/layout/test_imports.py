"""Each layer imports only lower layers, and of the guarded third-party libraries only those that it needs."""

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.layout.repository import PACKAGES, ROOT, python_files

BELOW: dict[str, set[str]] = {
    "src/trainium_wire": set(),
    "src/trainium_runtime": {"trainium_wire"},
    "src/trainium_core": {"trainium_wire", "trainium_runtime"},
    "userdata/trainium_userdata": {"trainium_wire", "trainium_runtime", "trainium_core"},
    "constructs/trainium_cdk": {"trainium_wire", "trainium_runtime", "trainium_core", "trainium_userdata"},
    "src/trainium_local": {"trainium_wire", "trainium_runtime", "trainium_core", "trainium_userdata"},
    "src/trainium_cli": {
        "trainium_wire",
        "trainium_runtime",
        "trainium_core",
        "trainium_userdata",
        "trainium_local",
    },
    "stacks": {"trainium_wire", "trainium_runtime", "trainium_core", "trainium_userdata", "trainium_cdk"},
    "app.py": {"trainium_wire", "trainium_runtime", "trainium_core", "trainium_userdata", "trainium_cdk", "stacks"},
    "tools/demo": {"trainium_wire", "trainium_runtime", "trainium_core", "trainium_local", "trainium_cli"},
    "tools/bench": {"trainium_wire", "trainium_runtime", "trainium_core", "trainium_local", "trainium_cli", "tools"},
    "tools/lab": {"trainium_wire", "trainium_runtime", "trainium_core", "trainium_userdata", "trainium_local"},
    "tools/security": {"trainium_wire", "trainium_userdata", "trainium_local", "trainium_cli"},
}
"""The packages of ours that each layer may import besides itself."""

OURS = {*PACKAGES, "stacks", "app", "tools", "tests"}

CDK = {"aws_cdk", "cdk_nag", "constructs", "jsii"}
AWS_API = {"boto3", "botocore"}
EMULATOR = {"moto"}

LIBRARIES: dict[str, set[str]] = {
    "src/trainium_wire": set(),
    "src/trainium_runtime": AWS_API,
    "src/trainium_core": set(),
    "userdata/trainium_userdata": set(),
    "constructs/trainium_cdk": CDK,
    "src/trainium_local": AWS_API | EMULATOR,
    "src/trainium_cli": AWS_API,
    "stacks": CDK,
    "app.py": CDK,
    "tools/demo": AWS_API,
    "tools/bench": AWS_API,
    "tools/bench/smallest_app.py": CDK,
    "tools/lab": AWS_API,
    "tools/lab/stand_ins": set(),
    "tools/security": AWS_API | EMULATOR,
}
"""The guarded libraries that a folder may import; the deepest folder that contains a file decides."""

LATE = {
    "src/trainium_runtime": "boto3 and modules that import it: apps import names and records, and may have no boto3",
    "userdata/trainium_userdata/node/trn_node/__main__.py": "each call runs and imports only one part of the program",
    "userdata/trainium_userdata/node/trn_slurm/__main__.py": "each call runs and imports only one part of the program",
    "src/trainium_cli": "help, usage errors and completion do not wait for the libraries of a command",
    "src/trainium_local": "moto and botocore take seconds, and read the environment while they are imported",
    "src/trainium_core/problems.py": "difflib, which is needed only for mistakes",
    "src/trainium_core/plan/pilot_end.py": "zoneinfo, for an end that names a time zone",
    "src/trainium_core/jobs/source_files.py": "pathspec, which few of its importers need",
    "src/trainium_core/jobs/source_package.py": "gzip and tarfile, which few of its importers need",
    **{
        f"src/trainium_core/engines/{name}/engine.py": "an operation loads only its own part of an engine"
        for name in ("ec2", "eks", "pcs", "sagemaker")
    },
    "src/trainium_core/engines/sagemaker/jobs/container_entry.py": "a module that is beside it only in a container",
}
"""Modules and folders with imports in functions, and the reason. In the packages, stacks and app.py, all others
import at the top."""

CORE = Path("src/trainium_core")
ACCOUNT = CORE / "aws"
LISTINGS = CORE / "audit" / "listings"
AWS_CALLS = {"trainium_runtime.aws_errors", "trainium_runtime.aws_quotas", "trainium_runtime.aws_service"}
"""The modules through which core calls AWS. Only `aws_service` makes clients for core."""

PROTOCOLS = {
    "assess/listener.py": "rules and their tests read code of different forms",
    "clusters/absence.py": "the class with the requests imports the values beside the decision",
    "clusters/cluster.py": "the class with the requests imports the values beside the decision",
    "prices/price.py": "a plan and an app estimate costs without boto3",
    "setting_schema/forms.py": "each kind of setting has a form",
    "teardown/steps.py": "a teardown has several kinds of steps",
}
"""The modules of core that define a protocol, and the reason. In `jobs/`, the engines implement the protocols. Other
code names the class that calls AWS."""


@cache
def nodes(source: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(source)))


def imported(source: str) -> set[str]:
    """Top-level names of all absolute imports, including those in functions and TYPE_CHECKING blocks."""
    names: set[str] = set()
    for node in nodes(source):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module.split(".")[0])
    return names


def layer_of(file: Path) -> str:
    """The entry of BELOW that a file belongs to; empty if none."""
    return next((layer for layer in BELOW if file.is_relative_to(layer)), "")


def forbidden(file: Path, source: str) -> set[str]:
    """The imports of a file that its place does not allow."""
    layer = layer_of(file)
    own = Path(layer).parts[0] if layer.startswith("tools/") else Path(layer).stem
    folder = max((name for name in LIBRARIES if file.is_relative_to(name)), key=len)
    libraries = LIBRARIES[folder] | ({"botocore"} if calls_aws(file) else set())
    guarded = (OURS - BELOW[layer] - {own}) | ((CDK | AWS_API | EMULATOR) - libraries)
    return imported(source) & guarded


def calls_aws(file: Path) -> bool:
    """Whether a file is one of core's modules with AWS calls."""
    return file.is_relative_to(ACCOUNT) or (file.is_relative_to(CORE) and file.name.startswith("aws_"))


def imported_aws_calls(source: str) -> set[str]:
    modules = {node.module for node in nodes(source) if isinstance(node, ast.ImportFrom) and node.module}
    return modules & AWS_CALLS


LAYER_FILES = [file for file in python_files() if layer_of(file)]


def test_modules_import_only_what_their_layer_allows() -> None:
    wrong = {str(file): forbidden(file, (ROOT / file).read_text()) for file in LAYER_FILES}
    assert {name: found for name, found in wrong.items() if found} == {}


def imports_late(source: str) -> bool:
    """Whether a function contains an import."""
    functions = [node for node in nodes(source) if isinstance(node, ast.FunctionDef)]
    return any(isinstance(node, ast.Import | ast.ImportFrom) for function in functions for node in ast.walk(function))


def test_deferred_import_has_a_reason() -> None:
    of_product = [file for file in LAYER_FILES if not file.is_relative_to("tools")]
    late = [file for file in of_product if imports_late((ROOT / file).read_text())]
    assert [str(file) for file in late if not any(file.is_relative_to(place) for place in LATE)] == []
    assert [place for place in LATE if not any(file.is_relative_to(place) for file in late)] == []


def test_deferred_import_is_found() -> None:
    assert imports_late("class A:\n    def f(self):\n        if self:\n            import json")
    assert not imports_late("if True:\n    import json\ndef f(): ...")


def test_core_calls_aws_only_in_its_folder_and_in_modules_named_for_it() -> None:
    others = [file for file in LAYER_FILES if file.is_relative_to(CORE) and not calls_aws(file)]
    calling = [file for file in others if imported_aws_calls((ROOT / file).read_text())]
    assert [str(file) for file in calling if not file.is_relative_to(LISTINGS)] == [
        f"{CORE}/engines/{name}.py"
        for name in ("ec2/engine", "eks/engine", "engine", "parts", "pcs/engine", "sagemaker/engine")
    ]


def defines_protocol(source: str) -> bool:
    classes = [node for node in nodes(source) if isinstance(node, ast.ClassDef)]
    return any(isinstance(base, ast.Name) and base.id == "Protocol" for one in classes for base in one.bases)


def test_core_defines_protocols_only_for_a_reason() -> None:
    files = [file.relative_to(CORE) for file in LAYER_FILES if file.is_relative_to(CORE)]
    found = [file for file in files if defines_protocol((ROOT / CORE / file).read_text())]
    assert [str(file) for file in found if file.parts[0] != "jobs"] == [*PROTOCOLS]


def test_core_has_top_level_modules_only_for_shared_code() -> None:
    flat = {file.stem for file in LAYER_FILES if file.parent == CORE}
    assert flat == {"__init__", "facts", "html_page", "naming", "plurals", "polling", "problems"}


def test_aws_call_in_another_module_is_found() -> None:
    assert imported_aws_calls("from trainium_runtime.aws_service import AwsService")
    assert not calls_aws(Path("src/trainium_core/stacks/events.py"))
    assert not calls_aws(Path("src/trainium_cli/aws_output.py"))
    assert calls_aws(Path("src/trainium_core/stacks/aws_events.py"))
    assert calls_aws(Path("src/trainium_core/aws/network.py"))


def test_only_tests_import_tests() -> None:
    others = [file for file in python_files() if file.parts[0] != "tests"]
    assert [str(file) for file in others if "tests" in imported((ROOT / file).read_text())] == []


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("src/trainium_core/plan/plan.py", "from trainium_cdk import network"),
        ("src/trainium_core/plan/plan.py", "import boto3"),
        ("src/trainium_core/aws/network.py", "import boto3"),
        ("src/trainium_core/stacks/aws_events.py", "import aws_cdk"),
        ("constructs/trainium_cdk/network/network.py", "def look():\n    import boto3"),
        ("src/trainium_cli/main.py", "import aws_cdk.aws_ec2"),
        ("stacks/cluster.py", "from tests import samples"),
    ],
)
def test_forbidden_import_is_reported(file: str, source: str) -> None:
    assert forbidden(Path(file), source)


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("src/trainium_core/aws/capacity.py", "from botocore.exceptions import ClientError"),
        ("constructs/trainium_cdk/network/network.py", "from trainium_core import plan\nfrom aws_cdk import Stack"),
    ],
)
def test_allowed_imports_pass(file: str, source: str) -> None:
    assert forbidden(Path(file), source) == set()
