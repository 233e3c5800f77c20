"""HandlerFunction: its code in Lambda, the timeouts of its custom resources, and its log group."""

import re
import shutil
import stat
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

import trainium_runtime.handlers
from tests.constructs.synth import Template, as_text, new_stack, statements, synthesize
from tests.layout.repository import files
from trainium_cdk import handler_function
from trainium_cdk.handler_function import HandlerFunction

HANDLERS = (
    "controller",
    "eks_node_guard",
    "node_group_guard",
    "provider",
    "set_asleep",
    "stack_deletion",
)


@cache
def function(handler: str) -> Template:
    stack = new_stack()
    HandlerFunction(stack, "Function", handler=handler, timeout_minutes=7)
    return synthesize(stack)


def asset(template: Template) -> Path:
    (folder,) = template.file.parent.glob("asset.*")
    return folder


def test_tests_cover_every_handler() -> None:
    folder = Path(trainium_runtime.handlers.__file__).parent
    handlers = {path.stem for path in folder.glob("*.py") if "\ndef handle(" in path.read_text()}
    assert handlers == set(HANDLERS)


@pytest.mark.parametrize("handler", HANDLERS)
def test_handler_can_be_imported_with_the_standard_library_alone(handler: str) -> None:
    template = function(handler)
    entry = template.properties("AWS::Lambda::Function")["Handler"]
    module, attribute = entry.rsplit(".", 1)
    program = f"import sys; sys.path.insert(0, {str(asset(template))!r}); import {module}; {module}.{attribute}"
    # -I -S: neither this repository nor any installed package can be imported.
    subprocess.run([sys.executable, "-I", "-S", "-B", "-c", program], check=True)


def test_code_is_only_runtime_and_wire() -> None:
    """A change of any other file of this repository therefore does not change deployed functions."""
    code = asset(function("controller"))
    shipped = {path.relative_to(code) for path in code.rglob("*") if path.is_file()}
    packages = ("src/trainium_runtime", "src/trainium_wire")
    expected = {path for path in files() for package in packages if path.is_relative_to(package)}
    assert {Path("src") / path for path in shipped} == expected


def test_description_names_the_digest_of_the_code() -> None:
    template = function("controller")
    digest = asset(template).name.removeprefix("asset.")
    description = template.properties("AWS::Lambda::Function")["Description"]
    assert description == f"trainium-cdk: controller, version {digest[:12]}"


def test_code_of_checkout_with_umask_077_is_readable_for_lambda(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hash of an asset does not cover file modes, so an asset published with 0600 would not be replaced."""
    source = tmp_path / "trainium_runtime"
    shutil.copytree(Path(trainium_runtime.__file__).parent, source)
    for path in (source, *source.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    package = SimpleNamespace(__name__="trainium_runtime", __file__=str(source / "__init__.py"))
    monkeypatch.setattr(handler_function, "_PACKAGES", (package,))
    stack = new_stack()
    HandlerFunction(stack, "Function", handler="controller", timeout_minutes=7)
    code = asset(synthesize(stack))
    assert {stat.S_IMODE(path.stat().st_mode) for path in code.rglob("*") if path.is_file()} == {0o644}
    assert {stat.S_IMODE(path.stat().st_mode) for path in code.rglob("*") if path.is_dir()} == {0o755}


@pytest.mark.parametrize(("minutes", "seconds"), [(1, 7 * 60), (15, 49 * 60)])
def test_custom_resource_waits_for_all_attempts_of_its_function(minutes: int, seconds: int) -> None:
    stack = new_stack()
    function = HandlerFunction(stack, "Function", handler="provider", timeout_minutes=minutes)
    function.custom_resource(stack, "Resource", resource_type="Custom::Mine", properties={"A": "1"})
    (resource,) = synthesize(stack).resources("Custom::Mine").values()
    assert resource["Properties"]["ServiceTimeout"] == str(seconds)
    assert resource["DependsOn"]


def test_only_handler_function_creates_custom_resources() -> None:
    """It sets a service timeout. Without one, CloudFormation waits an hour for a function that cannot answer."""
    folder = Path(handler_function.__file__).parent
    making = {path.name for path in folder.rglob("*.py") if re.search(r"\bCustomResource\(", path.read_text())}
    assert making == {"handler_function.py"}


def test_log_group_is_deleted_with_the_stack() -> None:
    (log,) = function("controller").resources("AWS::Logs::LogGroup").values()
    assert log["DeletionPolicy"] == "Delete"
    assert log["Properties"]["RetentionInDays"] == 30


def test_function_logs_to_its_log_group() -> None:
    template = function("controller")
    logging = template.properties("AWS::Lambda::Function")["LoggingConfig"]
    assert logging == {"LogGroup": {"Ref": template.logical_id("AWS::Logs::LogGroup")}}


def test_function_may_write_its_log_and_create_no_other() -> None:
    template = function("controller")
    (statement,) = statements(template)
    assert statement["Action"] == ["logs:CreateLogStream", "logs:PutLogEvents"]
    assert as_text(statement["Resource"]) == f"${{{template.logical_id('AWS::Logs::LogGroup')}.Arn}}"
    assert "ManagedPolicyArns" not in template.properties("AWS::IAM::Role")
