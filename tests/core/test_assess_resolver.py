"""Name resolution: aliases, attributes set in __init__, functions of the project, and NumPy arrays."""

from pathlib import Path

import pytest

from tests.core.assessed import assessment_of, found_in, rules_in


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ntorch.cuda.is_available()",
        "import torch as t\nt.cuda.is_available()",
        "from torch import cuda\ncuda.is_available()",
        "from torch.cuda import is_available as ready\nready()",
        "import torch\nc = torch.cuda\nc.is_available()",
        "import torch.cuda\ntorch.cuda.is_available()",
        "try:\n    import torch\nexcept ImportError:\n    torch = None\nif torch: torch.cuda.is_available()",
        "import torch\nclass A:\n    def __init__(self):\n        self.c = torch.cuda\n"
        "    def f(self):\n        return self.c.is_available()",
        "import torch\nclass A:\n    def f(self):\n        return self.c.is_available()\n"
        "    def __init__(self):\n        self.c = torch.cuda",
    ],
)
def test_function_alias_is_resolved(source: str, tmp_path: Path) -> None:
    assert "C03" in rules_in(tmp_path, source)


@pytest.mark.parametrize(
    "source",
    [
        "import numpy as np\nimport torch\nx = np.zeros(3)\ndef f():\n    x[x > 0] = 1",
        "import torch\ndef f(t: torch.Tensor):\n    x = t.numpy()\n    return x[x > 0]",
        "import torch\nimport numpy as np\ndef f(x: np.ndarray):\n    x[:2] = 1\n    return x[x > 0]",
        "import torch\nfrom numpy import zeros\nclass A:\n    def __init__(self):\n        self.x = zeros(3)\n"
        "    def f(self):\n        self.x[:2] = 1\n        return self.x[self.x > 0]",
        "import torch, cv2\nfor name in names:\n    y = cv2.imread(name)\n    y[..., 0] = y.max().item()",
        "import torch\nimport pandas as pd\nfor row in rows:\n    pd.Series(row).tolist()",
        "import numpy as np\nimport torch\ndef boxes():\n    return np.zeros((3, 4))\ndef f():\n    x = boxes()\n"
        "    return x[x > 0]",
        "import numpy as np\nimport torch\ndef crop(x):\n    x[:2] = 0\n    return x[x > 1]\ncrop(np.zeros(3))",
        "import torch\nx = torch.tensor([1, 2])\nfor y in x:\n    print(y.item(), x[x > y], x.sort())",
        "import torch\nfor i in range(3):\n    n = torch.zeros(3).sum().item()",
        "import numpy as np\nimport torch\nfor i in range(3):\n    float(np.zeros(3).sum())",
    ],
)
def test_array_or_host_tensor_does_not_count_as_device_tensor(source: str, tmp_path: Path) -> None:
    assert rules_in(tmp_path, source) & {"O12", "S03", "S01", "S02"} == set()


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ("x = torch.zeros(3, device=d)\ndef f():\n    return x[x > 0]", "S03"),
        ("def f_loss(x: torch.Tensor):\n    x[:, :2] = 0", "O12"),
        ("def make():\n    return torch.zeros(3, device=d)\ndef f():\n    x = make()\n    return x[x > 0]", "S03"),
        ("def crop(x):\n    return x[x > 0]\ncrop(torch.zeros(3, device=d))", "S03"),
        ("x = torch.from_numpy(array).to(d)\ndef loss():\n    x[:2].add_(1)", "O12"),
        ("for x in loader:\n    loss = model(x)\n    total += loss.item()", "S01"),
        ("class A(torch.nn.Module):\n    def __init__(self):\n        self.fc = torch.nn.Linear(2, 2)\n"
         "    def forward(self, x):\n        y = self.fc(x)\n        if y.max() > 1:\n            return x", "S02"),
        ("for x in loader:\n    print(torch.ones(1, device=d).sum())", "S01"),
        ("def step(x):\n    return x.loss.item()\ndef train():\n    for x in loader:\n        step(x)", "S01"),
        ("n = torch.zeros(1, dtype=torch.long)\ntorch.distributed.all_reduce(n)", "D05"),
        ("correct = 0\nfor x, y in loader:\n    correct += (model(x).argmax(1) == y.long()).sum().item()\n"
         "t = torch.tensor([correct, 1])\ntorch.distributed.all_reduce(t)", "D05"),
        ("class A:\n    def __init__(self):\n        self.n = torch.tensor(0)\n    def f(self):\n"
         "        torch.distributed.all_reduce(self.n)", "D05"),
    ],
)  # fmt: skip
def test_tensor_is_tracked(source: str, rule: str, tmp_path: Path) -> None:
    assert rule in rules_in(tmp_path, f"import torch\nimport torch.distributed\n{source}")


@pytest.mark.parametrize(
    "source",
    [
        "for step, x in enumerate(loader):\n    if step % 100 == 0:\n        print(x.item())",
        "x.item()",
        "def f(x: torch.Tensor):\n    if x is None or x.shape[0] > 1 or x.dim() == 2:\n        return 1",
        "n = torch.tensor(0.0)\ntorch.distributed.all_reduce(n)",
        "if torch.cuda.is_available():\n    torch.cuda.manual_seed_all(1)",
        "use_cuda = torch.cuda.is_available()\nif use_cuda and flag:\n    torch.cuda.empty_cache()",
    ],
)
def test_harmless_code_has_no_finding_except_c03(source: str, tmp_path: Path) -> None:
    assert rules_in(tmp_path, f"import torch\nimport torch.distributed\n{source}") <= {"C03"}


@pytest.mark.parametrize("argument", ["torch.long", "dtype=torch.long", "name_of_type"])
def test_type_with_an_argument_returns_a_tensor(argument: str, tmp_path: Path) -> None:
    source = f"import torch\nfor x in loader:\n    print(model(x).sum().detach().type({argument}))"
    assert "S01" in rules_in(tmp_path, source)


def test_type_without_argument_returns_a_name(tmp_path: Path) -> None:
    source = "import torch\nfor x in loader:\n    print(x.detach().type())"
    assert "S01" not in rules_in(tmp_path, source)


def test_precision_is_matched_in_a_module_that_names_only_lightning(tmp_path: Path) -> None:
    assert "T08" in rules_in(tmp_path, "import lightning as L\nL.Trainer(precision='16-mixed')")


def test_function_of_another_module_is_resolved(tmp_path: Path) -> None:
    assessment = assessment_of(
        tmp_path,
        {
            "lib/arrays.py": "import numpy as np\ndef boxes():\n    return np.zeros(3)",
            "lib/tensors.py": "import torch\ndef boxes():\n    return torch.zeros(3, device=d)",
            "lib/__init__.py": "from .tensors import boxes as made",
            "a.py": "import torch\nfrom lib.arrays import boxes\ndef f(x):\n    return x[boxes() > 0]",
            "b.py": "import torch\nfrom lib import made\ndef f(x):\n    return x[made() > 0]",
        },
    )
    assert [Path(finding.path).name for finding in assessment.findings if finding.rule == "S03"] == ["b.py"]


def test_base_class_of_another_module_is_resolved(tmp_path: Path) -> None:
    assessment = assessment_of(
        tmp_path,
        {
            "base.py": "import torch\nclass Base(torch.nn.Module):\n    pass",
            "net.py": "import torch\nfrom base import Base\nclass Net(Base):\n    def forward(self, x):\n"
            "        return x + torch.arange(3)",
        },
    )
    assert [finding.rule for finding in assessment.findings] == ["O15"]


def test_rule_is_reported_once_for_each_line(tmp_path: Path) -> None:
    assert found_in(tmp_path, "import torch\na, b = torch.device('cuda:0'), torch.device('cuda:1')") == [("C01", 2)]


def test_guard_covers_the_device_that_it_selects(tmp_path: Path) -> None:
    source = "import torch\nd = 'cuda' if torch.cuda.is_available() else 'cpu'"
    assert found_in(tmp_path, source) == [("C03", 2)]


MODULE = (
    "import torch\nimport lib\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return lib.free(x)\n"
)


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ("    if torch.min(x) < 0:\n        pass", "S02"),
        ("    return x[x > 0]", "S03"),
        ("    x[..., 0] = 1", "O12"),
        ("    return x + torch.arange(3)", "O15"),
        ("    return inner(x)\ndef inner(y):\n    y[..., 0] = 1", "O12"),
    ],
)
@pytest.mark.parametrize("name", ["lib.py", "net.py"], ids=["another file", "same file"])
def test_function_that_a_forward_pass_calls_is_read_as_its_part(
    name: str, body: str, rule: str, tmp_path: Path
) -> None:
    free = f"import torch\ndef free(x):\n{body}\n"
    files = {"lib.py": free, "net.py": MODULE} if name == "lib.py" else {"net.py": free + MODULE.replace("lib.", "")}
    assert [(Path(finding.path).name, finding.rule) for finding in assessment_of(tmp_path, files).findings] == [
        (name, rule)
    ]


def test_function_that_a_step_of_another_file_calls_is_read_as_its_part(tmp_path: Path) -> None:
    files = {
        "measures.py": "def values(losses):\n    return losses.item()  # trn: ignore[S01] printed by the launcher\n",
        "train.py": "import torch\nfrom measures import values\ndef train(model, loader):\n    for x in loader:\n"
        "        values(model(x))\n",
    }
    files["measures.py"] = "import torch\n" + files["measures.py"]
    assessment = assessment_of(tmp_path, files)
    assert [(finding.rule, finding.reason) for finding in assessment.findings] == [("S01", "printed by the launcher")]
    assert not assessment.comments


def test_helper_without_a_call_from_a_step_is_not_read_as_its_part(tmp_path: Path) -> None:
    files = {
        "lib.py": "import torch\ndef free(x):\n    if torch.min(x) < 0:\n        return x.item()\n",
        "main.py": "import torch\nimport lib\nfor epoch in range(3):\n    train()\n    lib.free(model(x))\n",
    }
    assert not assessment_of(tmp_path, files).findings


def test_names_of_a_star_import_are_resolved(tmp_path: Path) -> None:
    files = {
        "parts.py": "import torch\nfrom lib import *\ndef free(x):\n    x[..., 0] = 1\n",
        "lib.py": "from parts import *",
        "net.py": MODULE.replace("import lib", "from lib import *").replace("lib.", ""),
    }
    assert [finding.rule for finding in assessment_of(tmp_path, files).findings] == ["O12"]
