"""Whether the image exists, boots and has the framework, and whether a pin is outdated."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.fake_account import IMAGE, FakeAccount
from tests.core.findings import finding_of
from trainium_core.catalog.neuron_release import NeuronRelease, neuron_release
from trainium_core.catalog.neuron_software import frameworks
from trainium_core.facts import facts

PYTORCH = facts()["image"]["ssm_parameter"]
JAX = "/aws/service/neuron/dlami/jax-0.10/ubuntu-24.04/latest/image_id"
EVERYTHING = "/aws/service/neuron/dlami/multi-framework/ubuntu-24.04/latest/image_id"
NEWER = replace(IMAGE, image_id="ami-0fedcba9876543210", description="Neuron SDK 2.31.2.")


def with_release(release: str) -> FakeAccount:
    return FakeAccount(found_image=replace(IMAGE, description=f"PyTorch 2.9. Neuron SDK {release}"))


@pytest.mark.parametrize(
    ("account", "says"),
    [
        (FakeAccount(parameter_value=None), "no SSM parameter /aws/service/neuron"),
        (FakeAccount(found_image=None), "no image ami-0123456789abcdef0 in us-west-2"),
        (FakeAccount(found_image=replace(IMAGE, state="pending")), "ami-0123456789abcdef0 is pending"),
        (FakeAccount(found_image=replace(IMAGE, root_device_name="/dev/xvda")), "is /dev/xvda, not /dev/sda1"),
        (
            FakeAccount(
                found_image=replace(IMAGE, name="Deep Learning AMI Neuron torch-neuronx 2.14.0 (Ubuntu 26.04)")
            ),
            "is for Ubuntu 26.04: nodes were tried on Ubuntu 24.04 and Amazon Linux 2023",
        ),
        (FakeAccount(found_image=replace(IMAGE, architecture="arm64")), "ami-0123456789abcdef0 is for arm64"),
        (
            FakeAccount(found_image=replace(IMAGE, root_volume_gib=600)),
            "needs 600 GiB, more than trn:root_volume_gib 512",
        ),
    ],
)
def test_unbootable_image_fails_with_a_fix(account: FakeAccount, says: str) -> None:
    finding = finding_of("image", account)
    assert finding.outcome == "fail"
    assert says in finding.found
    assert "set trn:" in finding.fix


@pytest.mark.parametrize(("release", "outcome"), [("2.23.0", "fail"), ("2.24.0", "pass")])
def test_image_needs_neuron_sdk_2_24_or_newer(release: str, outcome: str) -> None:
    finding = finding_of("image", with_release(release), ami=PYTORCH)
    assert finding.outcome == outcome
    assert ("Neuron SDK 2.24 or newer" in finding.fix) == (outcome == "fail")


TORCH_NEURON = "Deep Learning AMI Neuron torch-neuronx 2.14.0 (Ubuntu 24.04) 20261111"
TRN2 = {"instance_type": "trn2.48xlarge", "region": "us-east-2", "ami": IMAGE.image_id}


@pytest.mark.parametrize(
    ("settings", "release", "outcome", "says"),
    [
        (TRN2, "2.33.1", "pass", "is available"),
        (TRN2, "2.32.0", "fail", "which does not include native PyTorch (TorchNeuron, device neuron)"),
        ({"ami": IMAGE.image_id}, "2.33.1", "fail", "does not run on Trainium"),
    ],
)
def test_native_pytorch_is_recognised_by_image_name(
    settings: dict[str, str], release: str, outcome: str, says: str
) -> None:
    image = replace(IMAGE, name=TORCH_NEURON, description=f"Neuron SDK {release}")
    finding = finding_of("image", FakeAccount(found_image=image), **settings)
    assert finding.outcome == outcome
    assert says in finding.found


def test_unnamed_release_is_unknown_for_pytorch() -> None:
    account = FakeAccount(found_image=replace(IMAGE, description=""))
    assert finding_of("image", account).outcome == "unknown"
    assert finding_of("image", account, ami=IMAGE.image_id).outcome == "warn"


@pytest.mark.parametrize("ami", [EVERYTHING, IMAGE.image_id, "/my/image"])
def test_image_with_unknown_pytorch_support_is_a_warning(ami: str) -> None:
    finding = finding_of("image", with_release("2.32.0"), ami=ami)
    assert finding.outcome == "warn"
    assert "unknown whether ami-0123456789abcdef0, with Neuron SDK 2.32.0, includes PyTorch" in finding.found


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("verification", ["enforce", "observe"])
def test_unverified_image_and_type_suggest_observe_mode(
    monkeypatch: pytest.MonkeyPatch, known: bool, verification: str
) -> None:
    monkeypatch.setitem(facts()["verification"], "known", [["trn1.32xlarge", "2.31.1"]] if known else [])
    finding = finding_of("image", FakeAccount(), verification=verification)
    assert finding.outcome == "pass"
    assert ("set trn:verification to observe" in finding.fix) == (not known and verification == "enforce")


def test_image_with_a_stack_without_support_says_so() -> None:
    assert "AWS does not support training with PyTorch/XLA" in finding_of("image", FakeAccount()).found


@pytest.mark.parametrize(("release", "has_fault"), [("2.31.1", True), ("2.32.0", False)])
def test_fault_of_the_runtime_is_told_of_older_images(release: str, has_fault: bool) -> None:
    image = replace(IMAGE, name="Deep Learning AMI Neuron (Ubuntu 24.04)", description=f"Neuron SDK {release}")
    found = finding_of("image", FakeAccount(found_image=image), ami=IMAGE.image_id).found
    assert ("may corrupt results silently" in found) == has_fault


def test_image_is_deprecated_from_its_date_on() -> None:
    past, future = datetime(2026, 1, 26, tzinfo=UTC), datetime(2999, 1, 1, tzinfo=UTC)
    finding = finding_of("image", FakeAccount(found_image=replace(IMAGE, deprecated=past)))
    assert finding.outcome == "warn"
    assert "deprecated since 2026-01-26" in finding.found
    assert finding_of("image", FakeAccount(found_image=replace(IMAGE, deprecated=future))).outcome == "pass"


def test_outdated_pin_warns_with_both_ids_and_releases() -> None:
    account = FakeAccount(parameter_value=NEWER.image_id, other_images={NEWER.image_id: NEWER})
    finding = finding_of("image", account, ami=IMAGE.image_id, ami_parameter=PYTORCH)
    assert finding.outcome == "warn"
    assert f"pinned is {IMAGE.image_id} (Neuron SDK 2.31.1)" in finding.found
    assert f"is now {NEWER.image_id} (Neuron SDK 2.31.2)" in finding.found
    assert "trn image pin" in finding.fix


@pytest.mark.parametrize(
    ("description", "release"),
    [
        ("Deep Learning AMI. Neuron SDK 2.31.0", "2.31.0"),
        ("[Copied ami-1 from us-east-1] Neuron SDK v2.31.0, PyTorch", "2.31.0"),
        ("Neuron SDK", None),
    ],
)
def test_release_is_read_from_the_description(description: str, release: str | None) -> None:
    named = neuron_release(description)
    assert (str(named) if named else None) == release


@given(major=st.integers(0, 3), minor=st.integers(0, 99), patch=st.integers(0, 99))
def test_framework_support_is_the_same_for_all_patches_of_a_release(major: int, minor: int, patch: int) -> None:
    release = NeuronRelease((major, minor, patch))
    assert release.may_contain(frameworks()["xla"]) == ((major, minor) <= (2, 31))
    assert release.may_contain(frameworks()["native"]) == ((major, minor) >= (2, 33))


def test_image_of_another_account_is_a_warning() -> None:
    finding = finding_of("image", FakeAccount(found_image=replace(IMAGE, owner="210987654321")), ami=IMAGE.image_id)
    assert finding.outcome == "warn"
    assert "belongs to account 210987654321, not to Amazon" in finding.found


def test_pin_with_missing_parameter_is_a_warning() -> None:
    finding = finding_of("image", FakeAccount(parameter_value=None), ami=IMAGE.image_id, ami_parameter=PYTORCH)
    assert finding.outcome == "warn"
    assert f"{PYTORCH}, the source of {IMAGE.image_id}, does not exist" in finding.found
