"""`trn assess`: exit codes of a linter, the verdicts first, and machine-readable formats."""

import json
from pathlib import Path

import pytest

from tests.cli.running import run, run_installed
from trainium_cli.exit_codes import ExitCode

STOPS = "import flash_attn\n"
CHANGE = "import torch\nx = torch.zeros(3).cuda()\n"
CLEAN = "import torch\nx = torch.zeros(3)\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_trn_writes_into_a_folder_has_no_findings(tmp_path: Path) -> None:
    assert run("init", str(tmp_path), "--yes").exit_code == ExitCode.OK
    (tmp_path / "cdk.out").mkdir()
    (tmp_path / "cdk.out" / "asset.0a1b.sh").write_text("nvidia-smi\n")
    (tmp_path / "trn-results" / "job-1" / "outputs").mkdir(parents=True)
    (tmp_path / "trn-results" / "job-1" / "outputs" / "start.sh").write_text("nvidia-smi\n")
    document = json.loads(run("assess", str(tmp_path), "--format", "json").output)
    assert document["findings"] == []
    assert document["unknown_libraries"] == {}


@pytest.mark.parametrize(
    ("source", "options", "code"),
    [
        (STOPS, (), ExitCode.NOT_READY),
        (CHANGE, (), ExitCode.OK),
        (CHANGE, ("--fail-on", "change"), ExitCode.NOT_READY),
        (CHANGE, ("--fail-on", "slow"), ExitCode.NOT_READY),
        (CLEAN, ("--fail-on", "review"), ExitCode.OK),
        (STOPS, ("--fail-on", "never"), ExitCode.OK),
        ("def f(:", (), ExitCode.BAD_INPUT),
        (
            "import torch\nmodel = torch.nn.parallel.DistributedDataParallel(m)\n",
            ("--framework", "native"),
            ExitCode.OK,
        ),
        (
            "import torch\nmodel = torch.nn.parallel.DistributedDataParallel(m)\n",
            ("--framework", "xla"),
            ExitCode.NOT_READY,
        ),
        ("import flash_attn  # trn: ignore[flash-attn] only on GPUs\n", (), ExitCode.OK),
    ],
)
def test_exit_code_follows_findings_and_options(source: str, options: tuple[str, ...], code: int, folder: Path) -> None:
    (folder / "a.py").write_text(source)
    assert run("assess", ".", *options).exit_code == code


@pytest.mark.parametrize("shape", ["text", "json", "sarif", "html"])
def test_every_format_has_the_same_exit_code(shape: str, folder: Path) -> None:
    (folder / "a.py").write_text(STOPS)
    assert run("assess", ".", "--format", shape).exit_code == ExitCode.NOT_READY


def test_unreadable_file_fails_and_the_rest_is_shown(folder: Path) -> None:
    (folder / "a.py").write_text(CHANGE)
    (folder / "b.py").write_text("def f(:")
    shown = run("assess", ".")
    assert shown.exit_code == ExitCode.NOT_READY
    assert "a.py:2:5: change: C02" in shown.output
    assert "b.py:1: is not Python" in shown.output
    assert "1 file not fully read" in shown.output.splitlines()[0]


def test_folder_without_supported_files_is_bad_input(folder: Path) -> None:
    (folder / "notes.txt").write_text("x")
    ended = run("assess", ".")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "Nothing could be read in .: no file of a supported kind" in ended.stderr


def test_missing_path_is_bad_input() -> None:
    assert run("assess", "no/such/place").exit_code == ExitCode.BAD_INPUT
    assert run("assess").exit_code == ExitCode.BAD_INPUT


def test_verdict_of_each_stack_comes_first_with_its_support(folder: Path) -> None:
    (folder / "a.py").write_text(CHANGE)
    lines = run("assess", ".").output.splitlines()
    assert lines[0] == "native: needs edits: 1 kind of finding needs an edit"
    assert "public beta since Neuron 2.33" in lines[1]
    assert "2026-10-19" in " ".join(lines[1:4])
    assert any(line == "xla: needs edits: 1 kind of finding needs an edit" for line in lines)


def test_unknown_library_is_listed(folder: Path) -> None:
    (folder / "a.py").write_text("import strange\n")
    shown = run("assess", ".").output
    assert "native: nothing found; 1 library unknown" in shown
    assert "strange (a.py:1)" in shown


def test_json_has_every_finding_with_its_rule(folder: Path) -> None:
    (folder / "a.py").write_text(CHANGE)
    document = json.loads(run("assess", ".", "--format", "json").output)
    (finding,) = document["findings"]
    assert (finding["rule"], finding["path"], finding["line"], finding["column"]) == ("C02", "a.py", 2, 5)
    assert document["rules"]["C02"]["severity"] == {"native": "change", "xla": "change"}
    assert set(document["frameworks"]) == {"native", "xla"}


def test_sarif_has_rules_regions_and_suppressions(folder: Path) -> None:
    (folder / "a b.py").write_text(CHANGE + "import flash_attn  # trn: ignore[flash-attn] only on GPUs\n")
    document = json.loads(run("assess", ".", "--format", "sarif").output)
    assert document["version"] == "2.1.0"
    (sarif_run,) = document["runs"]
    rules = sarif_run["tool"]["driver"]["rules"]
    change, stops = sarif_run["results"]
    assert [rules[result["ruleIndex"]]["id"] for result in (change, stops)] == ["C02", "L-flash-attn"]
    assert (change["level"], stops["level"]) == ("warning", "error")
    location = change["locations"][0]["physicalLocation"]
    assert location["artifactLocation"] == {"uri": "a%20b.py"}
    assert location["region"] == {"startLine": 2, "startColumn": 5, "endLine": 2, "endColumn": 26}
    assert stops["suppressions"] == [{"kind": "inSource", "justification": "only on GPUs"}]
    assert "suppressions" not in change


def test_html_is_self_contained_and_escapes_code(folder: Path) -> None:
    (folder / "a.py").write_text("import torch\nx = torch.zeros(3).cuda(), '<script>alert(1)</script>'\n")
    page = run("assess", ".", "--format", "html").output
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert 'src="' not in page
    assert "@import" not in page


def test_output_in_pipe_has_no_colours(folder: Path) -> None:
    (folder / "a.py").write_text(STOPS)
    ended = run_installed("assess", ".")
    assert ended.returncode == ExitCode.NOT_READY
    assert "\x1b" not in ended.stdout + ended.stderr


def test_assessed_code_is_not_executed(folder: Path) -> None:
    (folder / "a.py").write_text("open('ran', 'w')\n")
    (folder / "setup.py").write_text("open('ran', 'w')\n")
    run("assess", ".")
    assert not (folder / "ran").exists()


def findings_of(*options: str) -> list[str]:
    document = json.loads(run("assess", ".", "--format", "json", "--fail-on", "never", *options).output)
    return [f"{finding['path']} {finding['rule']}" for finding in document["findings"]]


@pytest.fixture
def findings(folder: Path) -> Path:
    (folder / "a.py").write_text(STOPS + CHANGE)
    (folder / "sub").mkdir()
    (folder / "sub" / "b.py").write_text(CHANGE)
    return folder


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (("--select", "C"), ["a.py C02", "sub/b.py C02"]),
        (("--select", "C04,flash-attn"), ["a.py L-flash-attn"]),
        (("--select", "C0", "--ignore", "C02"), []),
        (("--ignore", "L"), ["a.py C02", "sub/b.py C02"]),
        (("--exclude", "sub"), ["a.py L-flash-attn", "a.py C02"]),
        (("--exclude", "sub/*.py", "--exclude", "c*"), ["a.py L-flash-attn", "a.py C02"]),
    ],
)
def test_rules_are_selected_and_files_excluded_by_options_or_settings(
    options: tuple[str, ...], shown: list[str], findings: Path
) -> None:
    assert findings_of(*options) == shown
    settings = dict[str, list[str]]()
    for option, value in zip(options[::2], options[1::2], strict=True):
        settings.setdefault(option.removeprefix("--"), []).extend(value.split(","))
    table = "".join(f"{name} = {json.dumps(values)}\n" for name, values in settings.items())
    (findings / "pyproject.toml").write_text(f"[tool.trn.assess]\n{table}")
    assert findings_of() == shown


def test_options_replace_settings(findings: Path) -> None:
    (findings / "pyproject.toml").write_text(
        '[tool.trn.assess]\nselect = ["S"]\nframework = "xla"\nfail-on = "change"\n'
    )
    assert run("assess", ".").exit_code == ExitCode.OK
    assert run("assess", ".", "--select", "C").exit_code == ExitCode.NOT_READY
    chosen = run("assess", ".", "--select", "C", "--fail-on", "stops", "--framework", "native")
    assert chosen.output.startswith("native:")


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("selects = []", "has no setting selects"),
        ("select = 'C'", "must be a list of strings"),
        ("framework = 'cuda'", "must be one of native, xla, both"),
        ("baseline = 1", "must be the name of a file"),
        ("ignore = ['X99']", "X99 is no rule"),
        ("=", "cannot be read"),
    ],
)
def test_wrong_setting_is_named(table: str, says: str, findings: Path) -> None:
    (findings / "pyproject.toml").write_text(f"[tool.trn.assess]\n{table}\n")
    ended = run("assess", ".")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert says in ended.stderr


def test_findings_of_a_baseline_are_left_out_where_lines_have_moved(findings: Path) -> None:
    assert run("assess", ".", "--write-baseline", "known.json").output == "3 findings written to known.json\n"
    (findings / "a.py").write_text("import os\n" + STOPS + CHANGE + "y = torch.ones(3).cuda()\n" + CHANGE)
    assert findings_of("--baseline", "known.json") == ["a.py C02", "a.py C02"]
    shown = run("assess", ".", "--baseline", "known.json")
    assert shown.exit_code == ExitCode.OK
    assert "Left out: 3 findings of the baseline." in shown.output
    assert shown.output.startswith("native: needs edits: 1 kind of finding needs an edit; 3 findings left out\n")


@pytest.mark.usefixtures("findings")
def test_verdict_names_the_findings_of_rules_that_are_not_selected() -> None:
    output = run("assess", ".", "--ignore", "C02,flash-attn").output
    assert output.startswith("native: nothing found; 3 findings left out\n")
    assert "Left out: 3 findings of rules that are not selected." in output


@pytest.mark.parametrize("content", ["{", "[]", '{"schema": "other", "findings": []}'])
def test_file_that_is_no_baseline_is_named(content: str, findings: Path) -> None:
    (findings / "known.json").write_text(content)
    ended = run("assess", ".", "--baseline", "known.json")
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "known.json is not a baseline" in ended.stderr


@pytest.mark.parametrize(
    ("plan", "shown"),
    [
        ({"trn:instance_type": "trn1.32xlarge"}, ["xla"]),
        ({"trn:instance_type": "trn2.48xlarge", "trn:ami": "ami-0123456789abcdef0"}, ["native"]),
        ({"trn:instance_type": "p5.48xlarge"}, ["native", "xla"]),
        ({"trn:instance_type": "none"}, ["native", "xla"]),
    ],
)
def test_stack_is_that_of_the_plan(plan: dict[str, str], shown: list[str], folder: Path) -> None:
    (folder / "a.py").write_text(CHANGE)
    (folder / "cdk.json").write_text(json.dumps({"context": {"trn:region": "us-east-2", **plan}}))
    assert [*json.loads(run("assess", ".", "--format", "json").output)["frameworks"]] == shown


def test_places_come_before_the_texts_with_their_severity(folder: Path) -> None:
    (folder / "a.py").write_text("import torch\nmodel = torch.nn.parallel.DistributedDataParallel(m)\n")
    output = run("assess", ".").output
    place = "a.py:2:9: native none, xla stops: D03 model"
    assert 0 < output.index(place) < output.index("STOPS: ")
    assert "a.py:2:9: stops: D03" in run("assess", ".", "--framework", "xla").output
