"""The documentation names only existing commands and options, and shows the real output of offline commands."""

import json
import re
import shlex
import shutil
import tomllib
from pathlib import Path

import pytest

from tests.aws_cli import command_error
from tests.cli.running import run
from trainium_cli.main import COMMANDS
from trainium_core.jobs.request import job_request, read_job_file
from trainium_core.plan.context import plan_from_context

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]


def commands_named_in(page: Path) -> set[str]:
    """The words after `trn` where it is typed as a command: in code, or after a shell prompt."""
    return set(re.findall(r"(?:`|\$ |^ *|&& )trn ([a-z]+)", page.read_text(), flags=re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_name_only_existing_commands(page: Path) -> None:
    assert commands_named_in(page) <= set(COMMANDS)


def blocks(page: Path) -> list[tuple[str, str]]:
    return re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def test_readme_and_site_begin_with_the_same_three_lines_of_code() -> None:
    (_, readme), *_ = blocks(ROOT / "README.md")
    assert blocks(ROOT / "docs" / "index.md") == [("bash", readme)]
    assert len(readme.splitlines()) == 3


JOB_FILES = [
    (page, block)
    for page in PAGES
    for kind, block in blocks(page)
    if kind == "toml" and {"script", "command"} & tomllib.loads(block).keys()
]


@pytest.mark.parametrize(("page", "job_file"), JOB_FILES, ids=[page.name for page, _ in JOB_FILES])
def test_job_files_in_pages_are_valid(page: Path, job_file: str, tmp_path: Path) -> None:  # noqa: ARG001
    for name, text in {"job.toml": job_file, "train.py": "", "words.json": "{}"}.items():
        (tmp_path / name).write_text(text)
    job_request(read_job_file(tmp_path / "job.toml"))


CHECKLIST = ROOT / "docs" / "start" / "first-deployment.md"


def typed(page: Path) -> set[str]:
    """The `trn` commands in a page, without comments and without the arguments of commands that they run."""
    texts = [
        block for kind, block in blocks(page) if kind in ("", "bash") and not re.search(r"^\$ ", block, re.MULTILINE)
    ]
    commands = re.findall(
        r"(?:^|; |&& |local -- )(trn (?!local --)(?:(?! -- )[^;&|#>\n])*)", "\n".join(texts), re.MULTILINE
    )
    return {command.strip() for command in commands}


TYPED = sorted({line for page in PAGES for line in typed(page)})
BLOCKS = blocks(CHECKLIST)


@pytest.mark.parametrize("line", TYPED)
def test_commands_in_pages_have_existing_options(line: str) -> None:
    ended = run(*shlex.split(line)[1:], "--help")
    assert ended.exit_code == 0, ended.output


AWS_COMMANDS = sorted(
    {
        re.split(r" [|#] |;", command)[0].strip()
        for page in PAGES
        for kind, block in blocks(page)
        if kind in ("", "bash")
        for command in re.findall(r"^(?:\$ )? *(?:trn local -- )?(aws .*)", block.replace("\\\n", " "), re.MULTILINE)
    }
    | {command for page in PAGES for command in re.findall(r"`(aws [^`]* --[^`]*)`", page.read_text())}
)


@pytest.mark.parametrize("command", AWS_COMMANDS)
def test_aws_commands_in_pages_have_existing_options(command: str) -> None:
    assert command_error(command) == ""


SHOWN = [
    (page, command, output)
    for page in PAGES
    for _, block in blocks(page)
    for command, output in re.findall(r"^\$ (trn .*)\n((?:(?!\$ ).*\n?)*)", block, re.MULTILINE)
    if re.match(r"trn (plan|estimate|init|explain|types|settings)\b", command)
]


def words(text: str) -> list[str]:
    """The words of a text, independent of the terminal's width."""
    return re.sub(r"─+", "─", text).split()


@pytest.mark.parametrize(("page", "command", "output"), SHOWN, ids=[f"{page.name}: {line}" for page, line, _ in SHOWN])
def test_output_in_pages_is_real_output(
    page: Path, command: str, output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(ROOT / "cdk.json", tmp_path)
    monkeypatch.setenv("COLUMNS", "100")  # Paths are not wrapped, as on a terminal.
    assert words(run(*shlex.split(command)[1:]).output) == words(output), f"{page}: {command}"


def test_plan_of_checklist_is_valid_with_its_changes() -> None:
    settings, *later = [json.loads(f"{{{block}}}") for kind, block in BLOCKS if kind == "json"]
    plan_from_context(settings, ROOT)
    for change in later:
        plan_from_context(settings | change, ROOT)
    changes = [dict(part.split("=", 1) for part in re.findall(r"-c (\S+)", line)) for line in typed(CHECKLIST)]
    for change in filter(None, changes):
        plan_from_context(settings | change, ROOT)


# CPU AFFINITY of the devices in AWS's page runtime-performance-tips.
NUMA_CPUS = {
    "trn1.32xlarge": ("0-31,64-95", "32-63,96-127"),
    "trn2.48xlarge": ("0-47,96-143", "48-95,144-191"),
}
NUMA_NODES = {"trn1.32xlarge": "0011001100110011", "trn2.48xlarge": "1111000000001111"}


@pytest.mark.parametrize(("kind", "processes"), [("trn1.32xlarge", 32), ("trn2.48xlarge", 64)])
def test_documented_binding_follows_the_numa_layout_of_aws(
    kind: str, processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = ROOT / "docs" / "guides" / "jobs.md"
    (code,) = [text for language, text in blocks(jobs) if language == "python" and "sched_setaffinity" in text]
    if kind == "trn1.32xlarge":
        code = re.sub(r"^numa = .*# trn1.32xlarge: (.*)$", r"\1", code, flags=re.MULTILINE)
    for node, cpus in enumerate(NUMA_CPUS[kind]):
        folder = tmp_path / f"node{node}"
        folder.mkdir()
        (folder / "cpulist").write_text(f"{cpus}\n")
    bound = list[set[int]]()
    monkeypatch.setattr("os.sched_setaffinity", lambda _, cpus: bound.append(cpus))
    for rank in range(processes):
        monkeypatch.setenv("LOCAL_RANK", str(rank))
        monkeypatch.setenv("LOCAL_WORLD_SIZE", str(processes))
        exec(code.replace("/sys/devices/system/node", str(tmp_path)), {})
    half = {32: 64, 64: 96}[processes]
    assert {len(cpus) for cpus in bound} == {half}
    first_cpus = [int(NUMA_CPUS[kind][int(node)].split("-")[0]) for node in NUMA_NODES[kind]]
    assert [min(cpus) for cpus in bound] == [cpu for cpu in first_cpus for _ in range(processes // 16)]
