"""Each rule for code matches its bad example and not its good one, and each rule has a source and a date."""

from pathlib import Path

import pytest

from tests.core.assessed import found_in, rules_in
from trainium_core.assess import checks
from trainium_core.assess.assessment import assess
from trainium_core.assess.rules import LIBRARY_PREFIX, STACKS, CodeRule, Severity, libraries, rules, stacks

CODE_RULES = [rule for rule in rules().values() if not rule.id.startswith(LIBRARY_PREFIX)]
LIBRARY_RULES = list(libraries().optional)


def rules_of_example(folder: Path, rule: CodeRule, text: str) -> set[str]:
    (folder / rule.example_file).write_text(text.lstrip("\n"))
    return {finding.rule for finding in assess([folder]).findings}


@pytest.mark.parametrize("rule", CODE_RULES, ids=lambda rule: rule.id)
def test_bad_example_of_a_rule_is_found(rule: CodeRule, tmp_path: Path) -> None:
    assert rule.id in rules_of_example(tmp_path, rule, rule.bad)


@pytest.mark.parametrize("rule", CODE_RULES, ids=lambda rule: rule.id)
def test_good_example_of_a_rule_is_not_found(rule: CodeRule, tmp_path: Path) -> None:
    assert rule.good.strip()
    assert rule.id not in rules_of_example(tmp_path, rule, rule.good)


IN_FORWARD = """
import torch
class Net(torch.nn.Module):
    def forward(self, x):
"""


@pytest.mark.parametrize(
    ("rule", "source"),
    [
        ("S09", f"{IN_FORWARD}        while len(out) < x.size(0): out.append(self.cell(x))"),
        ("S09", "import torch\ndef generate(model, x):\n    while True: x = model(x)"),
        ("O11", "import torch\ncell = torch.nn.LSTMCell(3, 3)"),
        ("S03", f"{IN_FORWARD}        n = torch.max(x).item()\n        return torch.arange(0, n, device=x.device)"),
        ("S03", f"{IN_FORWARD}        return x.new_zeros(2, int(x.max()) + 1)"),
        ("S03", f"{IN_FORWARD}        return torch.zeros((2, x.max().item()))"),
        ("S03", f"{IN_FORWARD}        return x[:, : x.long().max().item()]"),
        ("S03", f"{IN_FORWARD}        return torch.arange(x.max())"),
        ("P01", "from accelerate import Accelerator\nimport torch\naccelerator = Accelerator()\n"
                "accelerator.clip_grad_norm_(parameters, 1.0)"),
        ("P01", "import torch\ndef train(fabric, model):\n    fabric.clip_gradients(model, max_norm=1.0)"),
        ("D04", "from lightning.fabric.strategies import FSDPStrategy\nstrategy = FSDPStrategy()"),
        ("D04", "import lightning as L\nL.Trainer(strategy='fsdp')"),
        ("L-apex", "from apex.optimizers import FusedAdam"),
        ("P03", "import torch_xla.core.xla_model as xm\n\nxm.mark_step()"),
        ("P10", "import torch\nif xla:\n    import torch_xla.core.xla_model as xm\n    xm.mark_step()"),
        ("P13", "import torch\ntorch.symeig(x)"),
        ("P13", "import torch\ntorch.stft(x, 16)"),
    ],
)  # fmt: skip
def test_last_line_has_a_finding_of_the_rule(rule: str, source: str, tmp_path: Path) -> None:
    assert (rule, source.count("\n") + 1) in found_in(tmp_path, source)


@pytest.mark.parametrize(
    ("rule", "source"),
    [
        ("T01", "import torch\ndef table(n):\n    return torch.linspace(0, 1, n, dtype=torch.float64)"),
        ("O15", f"{IN_FORWARD}        times = torch.linspace(-1, 9, steps=5)\n        times = times.int().tolist()"),
        ("S04", "from torch.utils.data import DataLoader\nDataLoader(train_set, sampler=sampler, drop_last=False)"),
        ("O07", f"{IN_FORWARD}        return self.stft_fn.inverse(x, phase)"),
        ("O05", "import torch\ndef collate(batch):\n    return torch.sort(torch.LongTensor([len(x) for x in batch]))"),
        ("C01", "import torch\nbackends = {'cuda': 1}\nbackend = backends['cuda']"),
        ("S03", "import torch\nlengths = torch.tensor([1, 2])\nx = torch.zeros(lengths.max().item())"),
        ("S03", f"{IN_FORWARD}        return x.view(x.shape[0], -1)[:, : x.size(1)]"),
        ("S09", "import torch\nwhile True:\n    model(x)"),
    ],
)  # fmt: skip
def test_source_has_no_finding_of_the_rule(rule: str, source: str, tmp_path: Path) -> None:
    assert rule not in rules_in(tmp_path, source)


@pytest.mark.parametrize(
    ("name", "line", "is_found"),
    [
        ("requirements.txt", "torch==1.6.0", True),
        ("requirements.txt", "torch<2", True),
        ("requirements.txt", "torch~=2.4.0", True),
        ("environment.yml", "dependencies:\n  - pytorch=1.13.1", True),
        ("pyproject.toml", "project.dependencies = ['torch == 2.1.*']", True),
        ("setup.py", "from setuptools import setup\nsetup(install_requires=['torch<=2.4'])", True),
        ("run.sh", "pip install torch==2.0.1+cu118", True),
        ("requirements.txt", "torch>=1.13", False),
        ("requirements.txt", "torch==2.10.0", False),
        ("requirements.txt", "torch~=2.4", False),
        ("requirements.txt", "torch<3", False),
        ("requirements.txt", "pytorch-lightning==1.6.0", False),
        ("requirements.txt", "torchvision==0.15", False),
    ],
)
def test_pin_of_an_old_torch_is_found(name: str, line: str, is_found: bool, tmp_path: Path) -> None:
    (tmp_path / name).write_text(line)
    assert ("P12" in {finding.rule for finding in assess([tmp_path]).findings}) is is_found


@pytest.mark.parametrize("rule", LIBRARY_RULES, ids=lambda rule: rule.id)
def test_library_is_found_as_import_and_as_requirement(rule: CodeRule, tmp_path: Path) -> None:
    modules = [name for name, found_rule in libraries().by_module.items() if found_rule is rule]
    names = [name for name, found_rule in libraries().by_distribution.items() if found_rule is rule]
    (tmp_path / "requirements.txt").write_text("\n".join(f"{name}==1.0" for name in names))
    (tmp_path / "code.py").write_text("\n".join(f"import {name}" for name in modules))
    findings = [finding for finding in assess([tmp_path]).findings if finding.rule == rule.id]
    assert len(findings) == len(names) + len(modules)


@pytest.mark.parametrize("rule", rules().values(), ids=lambda rule: rule.id)
def test_rule_has_reason_fix_effort_and_source(rule: CodeRule) -> None:
    assert all((rule.why, rule.fix, rule.source))
    assert rule.date.year >= 2026
    assert rule.effort in ("S", "M", "L")
    assert set(rule.severity) == set(STACKS)
    assert not f"{rule.why}{rule.fix}".endswith(".")


def test_covered_rules_exist() -> None:
    assert {name for rule in rules().values() for name in rule.covers} <= set(rules())


def test_checks_of_rules_exist() -> None:
    used = {match.check for rule in CODE_RULES for match in rule.matches if match.check}
    assert all(hasattr(checks, name) for name in used - {"lfs_pointer"})


def test_neutral_library_has_no_rule() -> None:
    assert libraries().neutral.isdisjoint(libraries().by_distribution)


def test_each_stack_has_support_source_and_date() -> None:
    assert list(stacks()) == list(STACKS)
    assert all(stack.support and stack.source and stack.date for stack in stacks().values())


def test_stops_is_the_highest_severity_and_each_has_a_meaning() -> None:
    assert sorted(Severity, reverse=True)[0] is Severity.stops
    assert all(severity.meaning for severity in Severity)
