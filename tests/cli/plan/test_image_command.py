"""`trn image`: shows the image and pins it in cdk.json."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.cli.running import GOOD, run
from tests.core.fake_account import IMAGE, FakeAccount
from trainium_cli.exit_codes import ExitCode
from trainium_cli.plan import image_command
from trainium_core.aws.images import Image
from trainium_core.facts import facts

PARAMETER = facts()["image"]["ssm_parameter"]
CONTEXT = {"trn:instance_type": "trn1.32xlarge", "trn:region": "us-west-2"}
NEWER = replace(IMAGE, image_id="ami-0fedcba9876543210")


@pytest.fixture(autouse=True)
def _account_with_an_image(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, FakeAccount())


def use(monkeypatch: pytest.MonkeyPatch, account: FakeAccount) -> None:
    def account_in(region: str) -> FakeAccount:
        assert region == "us-west-2"
        return account

    monkeypatch.setattr(image_command, "AwsAccount", account_in)


def write(folder: Path, **settings: Any) -> Path:
    file = folder / "cdk.json"
    context = CONTEXT | {f"trn:{name}": value for name, value in settings.items()}
    file.write_text(json.dumps({"app": "python3 app.py", "context": context}, indent=2) + "\n")
    return file


def context_of(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text())["context"]


def pin(*arguments: str, answer: str = "") -> Result:
    return run("image", "pin", *arguments, stdin=answer)


def test_unpinned_image_is_shown_with_its_release() -> None:
    ended = run("image", *GOOD)
    assert ended.exit_code == ExitCode.OK
    assert all(word in ended.stdout for word in (PARAMETER, IMAGE.image_id, "2.31.1", "amazon", "pinned", "no: every"))


def test_json_has_parameter_image_and_outcome() -> None:
    printed = json.loads(run("image", *GOOD, "--json").stdout)
    assert (printed["parameter"], printed["image"]["image_id"], printed["outcome"]) == (
        PARAMETER,
        IMAGE.image_id,
        "pass",
    )


@pytest.mark.parametrize(
    ("account", "code"),
    [(FakeAccount(parameter_value=None), ExitCode.NOT_READY), (FakeAccount(unavailable={"image"}), ExitCode.UNKNOWN)],
)
def test_exit_code_is_that_of_the_check(monkeypatch: pytest.MonkeyPatch, account: FakeAccount, code: ExitCode) -> None:
    use(monkeypatch, account)
    assert run("image", *GOOD).exit_code == code


def test_pin_shows_change_and_writes_it_after_confirmation(tmp_path: Path) -> None:
    file = write(tmp_path)
    ended = pin(answer="y\n")
    assert ended.exit_code == ExitCode.OK
    assert f'+    "trn:ami": "{IMAGE.image_id}"' in ended.output
    assert context_of(file) == CONTEXT | {"trn:ami": IMAGE.image_id, "trn:ami_parameter": PARAMETER}


def test_pin_without_confirmation_writes_nothing(tmp_path: Path) -> None:
    file = write(tmp_path)
    before = file.read_text()
    assert pin(answer="n\n").exit_code == ExitCode.NOT_READY
    assert pin(answer="").exit_code == ExitCode.BAD_INPUT
    assert file.read_text() == before


def test_repeated_pin_follows_the_parameter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = write(tmp_path, ami=IMAGE.image_id, ami_parameter=PARAMETER)
    use(monkeypatch, FakeAccount(parameter_value=NEWER.image_id, found_image=NEWER))
    assert pin("--yes").exit_code == ExitCode.OK
    assert context_of(file) == CONTEXT | {"trn:ami": NEWER.image_id, "trn:ami_parameter": PARAMETER}


@pytest.mark.parametrize(
    ("account", "code", "says"),
    [
        (FakeAccount(parameter_value=None), ExitCode.NOT_READY, f"the SSM parameter {PARAMETER} is not in us-west-2"),
        (FakeAccount(unavailable={"parameter"}), ExitCode.UNKNOWN, "Unknown: no answer about parameter"),
    ],
)
def test_missing_image_is_not_pinned(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, account: FakeAccount, code: ExitCode, says: str
) -> None:
    file = write(tmp_path)
    before = file.read_text()
    use(monkeypatch, account)
    ended = pin("--yes")
    assert (ended.exit_code, file.read_text()) == (code, before)
    assert says in ended.stderr


NATIVE = replace(
    IMAGE, image_id="ami-00000000000000002", name="Deep Learning AMI Neuron torch-neuronx 2.14.0 (Ubuntu 24.04) 2"
)
OLDER = replace(NATIVE, image_id="ami-00000000000000001", name=NATIVE.name.replace(") 2", ") 1"))
NEWER_SYSTEM = replace(NATIVE, image_id="ami-00000000000000003", name=NATIVE.name.replace("24.04", "26.04"))
FOREIGN = replace(NATIVE, image_id="ami-00000000000000004", owner="999999999999")


def account_with(*images: Image) -> FakeAccount:
    """An account that sees these images, the newest first."""
    return FakeAccount(other_images={image.image_id: image for image in images})


@pytest.mark.parametrize("pinned", [None, OLDER.image_id])
def test_native_image_is_pinned_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pinned: str | None) -> None:
    native = {"instance_type": "trn2.48xlarge", "region": "us-east-2"}
    file = write(tmp_path, **native, **({"ami": pinned} if pinned else {}))
    account = account_with(FOREIGN, NEWER_SYSTEM, IMAGE, NATIVE, OLDER)
    monkeypatch.setattr(image_command, "AwsAccount", lambda _region: account)
    ended = pin("--yes")
    assert ended.exit_code == ExitCode.OK, ended.output
    assert context_of(file)["trn:ami"] == NATIVE.image_id
    assert "trn:ami_parameter" not in context_of(file)
    assert NATIVE.name in " ".join(ended.stdout.split())


def test_native_image_for_an_untried_system_is_not_pinned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = write(tmp_path, instance_type="trn2.48xlarge", region="us-east-2")
    before = file.read_text()
    monkeypatch.setattr(image_command, "AwsAccount", lambda _region: account_with(NEWER_SYSTEM))
    ended = pin("--yes")
    assert (ended.exit_code, file.read_text()) == (ExitCode.NOT_READY, before)
    assert "for Ubuntu 24.04 or Amazon Linux 2023" in ended.stderr
    assert NEWER_SYSTEM.name in ended.stderr


def test_id_of_an_image_that_nothing_names_is_not_pinned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write(tmp_path, ami=IMAGE.image_id)
    use(monkeypatch, FakeAccount())
    ended = pin("--yes")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "its parameter is unknown" in ended.stderr


def test_options_before_subcommand_are_refused(tmp_path: Path) -> None:
    write(tmp_path)
    ended = run("image", *GOOD, "pin")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "pass the options after pin" in ended.stderr


def test_current_pin_is_not_changed(tmp_path: Path) -> None:
    file = write(tmp_path, ami=IMAGE.image_id, ami_parameter=PARAMETER)
    before = file.read_text()
    ended = pin()
    assert (ended.exit_code, file.read_text()) == (ExitCode.OK, before)
    assert "Already pinned" in ended.stdout
