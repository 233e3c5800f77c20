"""Which files are read, and how: notebooks, requirements, Dockerfiles, shell, CUDA, unreadable files, and comments."""

import gc
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from time import process_time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.core.assessed import assessment_of
from trainium_core.assess.assessment import assess, assess_file, read_project
from trainium_core.assess.rules import CodeRule, Severity, rules


def notebook(*cells: str) -> str:
    code = [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
    return json.dumps({"cells": [{"cell_type": "markdown", "source": "import torch.cuda"}, *code], "nbformat": 4})


def places(folder: Path, files: Mapping[str, str | bytes]) -> list[tuple[str, str]]:
    assessment = assessment_of(folder, files)
    return [(finding.rule, finding.place.removeprefix(f"{folder}/")) for finding in assessment.findings]


def test_notebook_is_read_by_cell_with_shared_names(tmp_path: Path) -> None:
    cells = ("import torch as t", "%matplotlib inline\n!pip install flash-attn\nx = 1\nt.cuda.synchronize()")
    assert places(tmp_path, {"a.ipynb": notebook(*cells)}) == [
        ("L-flash-attn", "a.ipynb:cell 2:2:13"),
        ("C04", "a.ipynb:cell 2:4:1"),
    ]


def test_broken_notebook_cell_is_named_and_others_are_read(tmp_path: Path) -> None:
    assessment = assessment_of(tmp_path, {"a.ipynb": notebook("def f(:", "import torch\ntorch.cuda.synchronize()")})
    assert [finding.rule for finding in assessment.findings] == ["C04"]
    assert "cell 1 is not Python" in str(assessment.unreadable[0])


@pytest.mark.parametrize("line", ["'%s'\n  % torch.cuda", "1\n  != torch.cuda"])
def test_line_of_python_that_begins_like_a_magic_is_read_as_python(line: str, tmp_path: Path) -> None:
    cell = f"import torch\nx = (\n  {line}.device_count()\n)"
    assert places(tmp_path, {"a.ipynb": notebook(cell)})
    assert assessment_of(tmp_path, {"a.ipynb": notebook(cell)}).unreadable == []


def test_shell_cell_is_read_as_shell(tmp_path: Path) -> None:
    cell = "%%bash\nexport CUDA_VISIBLE_DEVICES=0\nnvidia-smi"
    assert [rule for rule, _ in places(tmp_path, {"a.ipynb": notebook(cell)})] == ["C08", "C05"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("requirements.txt", "numpy\nflash_attn==2.6 ; python_version > '3'\n"),
        ("requirements-dev.txt", "--index-url x\nFlash-Attn[x]>=2\n"),
        ("pyproject.toml", "[project]\ndependencies = ['flash-attn>2']\n"),
        ("pyproject.toml", "[project.optional-dependencies]\ngpu = ['flash-attn>2']\n"),
        ("pyproject.toml", "[tool.poetry.group.gpu.dependencies]\nflash-attn = '^2'\n"),
        ("uv.lock", "[[package]]\nname = 'flash-attn'\nversion = '2'\n"),
        ("Pipfile.lock", '{"default": {"flash-attn": {}}}'),
        ("setup.cfg", "[options]\ninstall_requires =\n    numpy\n    flash-attn>2\n"),
        ("setup.py", "from setuptools import setup\nsetup(install_requires=['flash-attn>2'])\n"),
        ("environment.yml", "dependencies:\n  - python=3.12\n  - pip:\n    - flash-attn==2\n"),
        ("Dockerfile", "FROM ubuntu\nRUN pip install --no-cache-dir -U flash-attn==2 && ls\n"),
        ("run.sh", "python -m pip install 'flash-attn>2'\n"),
        ("run.sh", "uv pip install flash-attn\n"),
        ("run.sh", "uv add flash-attn\n"),
        ("run.sh", "mamba install -c conda-forge flash-attn\n"),
        ("run.sh", "conda install conda-forge::flash-attn=2\n"),
        ("requirements.txt", "git+https://github.com/Dao-AILab/flash-attn.git@v2\n"),
        ("requirements.txt", "-e git+https://example.com/fork.git#egg=flash-attn\n"),
    ],
)
def test_required_or_installed_library_is_found(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    findings = [finding for finding in assess([tmp_path]).findings if finding.rule == "L-flash-attn"]
    assert len(findings) == 1
    line = text.splitlines()[findings[0].line - 1]
    assert "flash" in line[findings[0].column - 1 :][:6].lower()


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("Dockerfile", "FROM pytorch/pytorch:2.4.0-cuda12.4-cudnn9-devel\n", "C10"),
        ("Dockerfile", "FROM ubuntu\nENV CUDA_VISIBLE_DEVICES=0 NCCL_DEBUG=INFO\n", "C08"),
        ("requirements.txt", "torch==2.4.0+cu121\n", "C10"),
        ("requirements.txt", "nvidia-cublas-cu12==12.1\n", "C10"),
        ("run.sh", "NCCL_DEBUG=INFO torchrun train.py\n", "C08"),
        ("run.sh", "nvidia-smi\n", "C05"),
        ("run.sh", "python3 -m torch_xla.distributed.xla_dist --tpu=x\n", "P03"),
        ("run.sh", "deepspeed train.py\n", "C11"),
        ("kernel.cu", "__global__ void f() {}\n", "K01"),
    ],
)
def test_line_in_file_other_than_python_is_found(name: str, text: str, rule: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert rule in {finding.rule for finding in assess([tmp_path]).findings}


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ("import flash_attn\n", "L-flash-attn"),
        ("def f():\n    import flash_attn\n", "L-flash-attn"),
        ("if __name__ == '__main__':\n    import flash_attn\n", "L-flash-attn"),
        ("try:\n    import flash_attn\nexcept ImportError:\n    raise ValueError\n", "L-flash-attn"),
        ("try:\n    import flash_attn\nfinally:\n    pass\n", "L-flash-attn"),
        ("try:\n    import flash_attn\nexcept ImportError:\n    flash_attn = None\n", "L-flash-attn-optional"),
        ("def f():\n    try:\n        import flash_attn\n    except:\n        pass\n", "L-flash-attn-optional"),
        ("if has_flash():\n    from flash_attn import flash_attn_func\n", "L-flash-attn-optional"),
        ("try:\n    import apex\nexcept ImportError:\n    apex = None\n", "L-apex-optional"),
        ("if __name__ == '__main__':\n    import deepspeed\n", "L-deepspeed"),
        ("try:\n    import json\nexcept ImportError:\n    pass\nelse:\n    import deepspeed\n", "L-deepspeed"),
    ],
)
def test_only_an_optional_import_is_reported_for_review(source: str, rule: str, tmp_path: Path) -> None:
    assessment = assessment_of(tmp_path, {"a.py": source})
    assert [finding.rule for finding in assessment.findings] == [rule]
    assert rules()[rule].severity["native"] is (Severity.review if rule.endswith("optional") else Severity.stops)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("requirements.txt", "# \f\f\ndeepspeed\n"),
        ("environment.yml", "dependencies:\f\n  - deepspeed\n"),
        ("pyproject.toml", "# \u2028\nproject.dependencies = ['deepspeed']\n"),
    ],
)
def test_form_feed_or_line_separator_ends_no_line_of_a_manifest(name: str, text: str, tmp_path: Path) -> None:
    ((rule, place),) = places(tmp_path, {name: text})
    assert (rule, place.rpartition(":")[0]) == ("L-deepspeed", f"{name}:2")


def spent(folder: Path, name: str, content: str) -> float:
    """The least processor time of three runs, without the collection of what other tests left."""
    path, times = folder / name, list[float]()
    path.write_text(content)
    gc.disable()
    try:
        for _ in range(3):
            began = process_time()
            assess_file(path, read_project([path]))
            times.append(process_time() - began)
    finally:
        gc.enable()
    return min(times)


@pytest.mark.parametrize(
    ("name", "content_of"),
    [
        ("a.ipynb", lambda count: notebook(f"x = (\n{' ' * count}")),
        ("a.ipynb", lambda count: notebook(*(f"!pip install x{at}" for at in range(count // 10)))),
        ("pyproject.toml", lambda count: f"project.dependencies = {[f'name{at}' for at in range(count)]}"),
        ("pyproject.toml", lambda count: "project.dependencies = [\n" + "'name',\n" * count + "]"),
        ("uv.lock", lambda count: "".join(f"[[package]]\nname = 'name{at}'\n" for at in range(count))),
    ],
    ids=["spaces", "commands", "dependencies", "repeated dependency", "packages"],
)
def test_time_does_not_grow_faster_than_the_file(name: str, content_of: Callable[[int], str], tmp_path: Path) -> None:
    spent(tmp_path, name, content_of(10))  # Loads the rules.
    assert spent(tmp_path, name, content_of(16_000)) < 8 * spent(tmp_path, name, content_of(4_000)) + 0.3


SYNCHRONISE = "import torch\ntorch.cuda.synchronize()\n"


def test_modules_that_a_given_script_imports_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "repo/setup.py": "",
        "repo/net/__init__.py": "from .layers import Layer",
        "repo/net/layers.py": SYNCHRONISE,
        "repo/net/other.py": SYNCHRONISE,
        "repo/src/lib/tools.py": SYNCHRONISE,
        "repo/jobs/data.py": "from net import absent\nimport lib.tools",
        "repo/jobs/train.py": "import os, data\nfrom net import Layer\nfrom outside import x",
        "repo/jobs/unused.py": SYNCHRONISE,
        "outside.py": SYNCHRONISE,
    }
    assessment_of(tmp_path, files)
    monkeypatch.chdir(tmp_path / "repo")
    assessment = assess([Path("jobs/train.py")])
    assert [finding.path for finding in assessment.findings] == ["net/layers.py", "src/lib/tools.py"]
    assert [*assessment.unknown] == ["outside"]


def test_link_out_of_the_given_paths_is_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("export TOKEN=abc; pip install flash-attn\n")
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "run.sh").symlink_to(secret)
    (folder / "inside.sh").symlink_to("own.sh")
    (folder / "own.sh").write_text("nvidia-smi\n")
    assessment = assess([folder])
    assert [Path(finding.path).name for finding in assessment.findings] == ["inside.sh", "own.sh"]
    assert [str(problem) for problem in assessment.unreadable] == [
        f"{folder}/run.sh: is a link to a file outside of the given paths"
    ]


def test_deeply_nested_manifest_is_unreadable(tmp_path: Path) -> None:
    (problem,) = assessment_of(tmp_path, {"pyproject.toml": f"a = {'[' * 9000}{']' * 9000}"}).unreadable
    assert problem.message == "is nested too deeply"


@pytest.mark.parametrize("source", ["match x:\n    case 1:\n        import strange\n", "with x:\n    import strange\n"])
@pytest.mark.parametrize("more", ["", "import torch\n"], ids=["without torch", "torch"])
def test_import_in_a_block_is_found(source: str, more: str, tmp_path: Path) -> None:
    assert [*assessment_of(tmp_path, {"a.py": source + more}).unknown] == ["strange"]


def test_unknown_library_is_listed_with_its_first_place(tmp_path: Path) -> None:
    assessment = assessment_of(
        tmp_path,
        {
            "a.py": "import os, numpy, own, strange\nimport strange.more",
            "own.py": "",
            "requirements.txt": "odd-one==1\n",
            "environment.yml": "channels:\n  - some\ndependencies:\n  - python=3.12\nvariables:\n  - other\n",
            "run.sh": "conda install python=3.12 pytorch::pytorch\npip install numpy > log.txt 2>&1\n"
            "pip install 'numpy>=2' 'yet-another>=1' | tail -1\n",
        },
    )
    assert {name: place.removeprefix(f"{tmp_path}/") for name, place in assessment.unknown.items()} == {
        "odd-one": "requirements.txt:1",
        "yet-another": "run.sh:3",
        "strange": "a.py:1",
    }


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.py", b"def f(:\n", "is not Python"),
        ("a.py", b"x = '\xff'\n", "encoding"),
        ("a.py", b"x = 1\0\n", "not a text file"),
        ("a.py", b"(" * 5000, "Python"),
        ("a.ipynb", b"[]", "is not a notebook"),
        ("pyproject.toml", b"[", "is not TOML"),
        ("pyproject.toml", b"a = " + b"1" * 5000, "is not TOML"),
        ("Pipfile.lock", b"{", "is not JSON"),
        ("setup.cfg", b"x", "is not a configuration file"),
    ],
    ids=["syntax", "encoding", "binary", "nested", "notebook", "toml", "toml-long", "json", "ini"],
)
def test_unreadable_file_is_named(name: str, content: bytes, says: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    (tmp_path / "good.py").write_text("import torch\ntorch.cuda.synchronize()\n")
    assessment = assess([tmp_path])
    assert [says in str(problem) for problem in assessment.unreadable] == [True]
    assert [finding.rule for finding in assessment.findings] == ["C04"]
    assert "1 file not fully read" in assessment.verdict("native")


def test_deep_expression_is_read_or_named(tmp_path: Path) -> None:
    assessment = assessment_of(tmp_path, {"a.py": "x = " + "-" * 3000 + "1\n", "b.py": "x = " + "+".join("a" * 20000)})
    assert all("deep" in str(problem) or "parsed" in str(problem) for problem in assessment.unreadable)


def test_installed_and_hidden_folders_are_skipped(tmp_path: Path) -> None:
    assessment = assessment_of(
        tmp_path, {"node_modules/a.py": "x", ".git/a.py": "x", "venv/a.py": "x", "b.py": "x = 1"}
    )
    assert assessment.files == 1


def test_comment_with_reason_ignores_a_finding(tmp_path: Path) -> None:
    source = (
        "import torch\ntorch.cuda.synchronize()  # trn: ignore[C04] a guard is above\n"
        "torch.cuda.synchronize()  # trn: ignore[C04]\n"
        "x = 1  # trn: ignore[C04] nothing is here\n"
        "y = '# trn: ignore[C04] no comment'\n"
        "torch.load(\n    'x',\n)  # trn: ignore[C09, C04] made on a CPU\n"
        "import flash_attn  # trn: ignore[flash-attn] only on GPUs\n"
    )
    assessment = assessment_of(tmp_path, {"a.py": source})
    assert [(finding.rule, finding.line) for finding in assessment.counted()] == [("C04", 3)]
    assert [(finding.rule, finding.reason) for finding in assessment.ignored] == [
        ("C04", "a guard is above"),
        ("C09", "made on a CPU"),
        ("L-flash-attn", "only on GPUs"),
    ]
    assert [(comment.line, "a reason" in comment.message) for comment in assessment.comments] == [(3, True), (4, False)]


def test_comment_in_text_file_ignores_a_finding(tmp_path: Path) -> None:
    assessment = assessment_of(tmp_path, {"requirements.txt": "flash-attn  # trn: ignore[flash-attn] only on GPUs\n"})
    assert [finding.reason for finding in assessment.findings] == ["only on GPUs"]


def test_columns_count_characters(tmp_path: Path) -> None:
    (finding,) = assessment_of(tmp_path, {"a.py": "import torch\n'äöü', torch.cuda.synchronize()"}).findings
    assert (finding.line, finding.column, finding.end_column) == (2, 8, 30)


WORDS = [
    *("torch", ".cuda", "()", "(", ")", "[", "]", "x", "=", ":", "*", "**", ",", ".item", "self", ".y", "%", "np"),
    "...",
    *("'cuda'", "f'{x}'", "{**x}", "(x:=1)", "\u2028", "\f", "\r", "é"),
    *("\n", "\n ", "if ", "for x in ", "return ", "await ", "not ", "lambda: ", "while x", "with x as y", "global x\n"),
    *("import torch\n", "import numpy as np\n", "class A(torch.nn.Module)", "def f(self, x)", "async def g(): pass\n"),
    *("try:\n 1\nexcept* E:\n 2\n", "match x:\n case [1, *y]: 3\n", "x: int = 1\n", "del x[1]\n"),
    "# trn: ignore[C01] é\n",
]


def is_inside(text: str, line: int, column: int) -> bool:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return 1 <= line <= len(lines) and 1 <= column <= len(lines[line - 1]) + 1


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(WORDS), max_size=40).map("".join))
def test_any_source_is_read_or_named_with_valid_places(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(text.encode())
    file_findings = assess_file(path, read_project([path]))
    assert all(problem.line <= text.count("\n") + text.count("\r") + 2 for problem in file_findings.unreadable)
    assert all(is_inside(text, finding.line, finding.column) for finding in file_findings.findings)
    assert all(is_inside(text, finding.end_line, finding.end_column) for finding in file_findings.findings)


@pytest.mark.parametrize("rule", [rule for rule in rules().values() if rule.bad], ids=lambda rule: rule.id)
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.floats(0, 1))
def test_findings_in_a_truncated_example_have_valid_places(rule: CodeRule, tmp_path: Path, cut: float) -> None:
    text = rule.bad[: int(len(rule.bad) * cut)]
    path = tmp_path / rule.example_file
    path.write_text(text)
    assert all(
        is_inside(text, finding.line, finding.column) for finding in assess_file(path, read_project([path])).findings
    )


def test_parallel_reading_gives_the_same_findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lib.py").write_text("import torch\ndef free(x):\n    x[..., 0] = 1\n")
    for number in range(11):
        (tmp_path / f"m{number}.py").write_text(
            "import torch\ntorch.cuda.synchronize()\nimport strange, lib\n"
            "class Net(torch.nn.Module):\n    def forward(self, x):\n        lib.free(x)\n"
        )
    alone = assess([tmp_path])
    monkeypatch.setattr("trainium_core.assess.assessment.SMALL_BYTES", 0)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    read = list[tuple[int, int]]()
    assert assess([tmp_path], lambda done, total: read.append((done, total))) == alone
    assert read[-1] == (12, 12)
