"""What `import trainium_cdk` imports: next to nothing, so that an app pays for what it uses."""

import json
import subprocess
import sys

import pytest

import trainium_cdk

COMMAND_LINE = {"boto3", "botocore", "click", "jmespath", "rich"}


def imported_by(code: str) -> set[str]:
    """The modules that code imports besides those of `import aws_cdk, constructs`."""
    script = (
        "import json, sys, aws_cdk, constructs; before = set(sys.modules)\n"
        f"{code}\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    ran = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    return set(json.loads(ran.stdout))


def test_the_package_alone_imports_no_module_of_the_cdk_and_nothing_that_it_exports() -> None:
    own = {"trainium_cdk", "trainium_core", "trainium_core.lazy_names"}
    found = imported_by("import trainium_cdk")
    assert {one for one in found if one.split(".")[0] not in sys.stdlib_module_names} == own


def test_a_fleet_imports_nothing_of_the_command_line_and_of_no_other_engine() -> None:
    found = imported_by("from trainium_cdk import NeuronFleet")
    assert {one.split(".")[0] for one in found} & COMMAND_LINE == set()
    assert {one for one in found if one.startswith(("aws_cdk.aws_sagemaker", "aws_cdk.aws_stepfunctions"))} == set()


def test_what_was_loaded_is_not_looked_at_again_by_the_garbage_collection() -> None:
    script = (
        "import gc, trainium_cdk; before = gc.get_freeze_count(), len(gc.get_objects())\n"
        "trainium_cdk.NeuronFleet; after = gc.get_freeze_count(), len(gc.get_objects())\n"
        "assert gc.isenabled(); print(after[0] > before[1] > 10 * after[1])"
    )
    ran = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert ran.stdout.strip() == "True"


@pytest.mark.parametrize("name", trainium_cdk.__all__)
def test_every_exported_name_is_found(name: str) -> None:
    assert getattr(trainium_cdk, name).__name__ == name


def test_a_name_that_is_not_exported_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Fleet'"):
        trainium_cdk.Fleet  # noqa: B018
