"""`trn local score`: what is measured, with which values, and how the result is shown."""

import json
from pathlib import Path

import pytest

from tests.cli.test_local import trn_in
from trainium_cli.score.apps import stacks_of
from trainium_cli.score.corpus import read_corpus
from trainium_cli.score.measuring import Score
from trainium_cli.score.outcome import FailedError, Outcome
from trainium_cli.score.parameters import NEW_ACCOUNT, values
from trainium_cli.score.report import failures, score_table

TOPIC = "Resources: {Topic: {Type: AWS::SNS::Topic}}\n"
WRONG = """\
- name: a type that there is not
  area: types
  refused: "[AWS::SNS::Nothing]"
  source: none
  template: {Resources: {Topic: {Type: AWS::SNS::Nothing}}}
  valid: {Resources: {Topic: {Type: AWS::SNS::Topic}}}
- name: nothing wrong
  area: types
  refused: something
  source: none
  template: {Resources: {Topic: {Type: AWS::SNS::Topic}}}
"""


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_files_that_are_no_templates_are_passed_over(tmp_path: Path) -> None:
    write(tmp_path, a_dot_yaml=TOPIC, b_dot_yaml="Resources: [", c_dot_json='{"Resources": {"X": 1}}', d_dot_yaml="- x")
    write(tmp_path, e_dot_json='{"Resources": [1]}')
    corpus = read_corpus(tmp_path)
    assert ([one.name for one in corpus.templates], corpus.left_out) == (["a.yaml"], {})


def test_a_copy_of_a_template_is_not_measured_again(tmp_path: Path) -> None:
    write(tmp_path, a_dot_yaml=TOPIC, a_dot_json=json.dumps({"Resources": {"B": {"Type": "AWS::SQS::Queue"}}}))
    write(tmp_path, copy__a_dot_yaml=TOPIC)
    assert [one.name for one in read_corpus(tmp_path).templates] == ["a.yaml"]


@pytest.mark.parametrize(
    ("section", "reason"),
    [
        ("Transform: AWS::Serverless-2016-10-31", "macros"),
        ("Outputs: {A: {Value: !ImportValue b}}", "exports of another stack"),
        ("Parameters: {ClusterArn: {Type: String}}", "parameters that name something in the account"),
        ("Parameters: {Zone: {Type: 'AWS::Route53::HostedZone::Id'}}", "parameters that name something in the account"),
        ("Mappings: {Images: {a: {b: ami-0123456789abcdef0}}}", "identifiers of one account"),
        ("Outputs: {A: {Value: '{{resolve:ssm:mine}}'}}", "values stored in the account"),
    ],
)
def test_a_template_that_needs_something_else_is_left_out(section: str, reason: str, tmp_path: Path) -> None:
    corpus = read_corpus(write(tmp_path, a_dot_yaml=f"{TOPIC}{section}\n"))
    assert (corpus.templates, corpus.left_out) == ((), {reason: 1})


@pytest.mark.parametrize(
    ("requirements", "source", "reason"),
    [
        ("aws-cdk-lib>=2\n", "DockerImageAsset(", "Docker"),
        ("aws-cdk-lib>=2\nno-such-package==1\n", "", "packages that are not installed"),
        ("aws-cdk-lib>=2\n", 'Environment(account="111111111111")', "another account"),
    ],
)
def test_an_app_that_needs_something_else_is_left_out(
    requirements: str, source: str, reason: str, tmp_path: Path
) -> None:
    write(tmp_path, app__cdk_dot_json="{}", app__requirements_dot_txt=requirements, app__app_dot_py=source)
    assert read_corpus(tmp_path).left_out == {reason: 1}


def test_an_app_that_needs_the_cdk_alone_is_measured(tmp_path: Path) -> None:
    write(tmp_path, app__cdk_dot_json="{}", app__requirements_dot_txt="aws-cdk-lib>=2\npytest\n# a word\n")
    assert [one.name for one in read_corpus(tmp_path).apps] == ["app"]


def test_the_stacks_of_an_app_are_in_the_regions_that_it_names(tmp_path: Path) -> None:
    for place, region in (("", "unknown-region"), ("assembly-Stage", "us-east-1")):
        stack = {
            "type": "aws:cloudformation:stack",
            "environment": f"aws://unknown-account/{region}",
            "properties": {"templateFile": "s.json", "stackName": f"in-{region}"},
        }
        manifest = {"artifacts": {"S": stack, "Tree": {"type": "cdk:tree"}}}
        (tmp_path / place).mkdir(exist_ok=True)
        (tmp_path / place / "manifest.json").write_text(json.dumps(manifest))
        (tmp_path / place / "s.json").write_text('{"Resources": {}}')
    found = {stack.name: stack.region for stack in stacks_of(tmp_path, "us-west-2")}
    assert found == {"in-unknown-region": "us-west-2", "in-us-east-1": "us-east-1"}


def test_a_sample_is_the_first_of_the_templates_by_hash(tmp_path: Path) -> None:
    for name in ("t0", "t1", "t2", "t3", "t4", "t5"):
        (tmp_path / f"{name}.yaml").write_text(f"{TOPIC}Description: {name}\n")
    assert [one.name for one in read_corpus(tmp_path, sample=2).templates] == ["t5.yaml", "t4.yaml"]


def test_parameters_get_what_is_in_a_new_account() -> None:
    wanted = {
        "Vpc": {"Type": "AWS::EC2::VPC::Id"},
        "First": {"Type": "AWS::EC2::Subnet::Id"},
        "Second": {"Type": "AWS::EC2::Subnet::Id"},
        "Both": {"Type": "List<AWS::EC2::Subnet::Id>", "Default": "subnet-12345678"},
        "Kept": {"Type": "String", "Default": "as-it-is"},
        "Size": {"Type": "Number", "MinValue": 3},
        "Kind": {"Type": "String", "AllowedValues": ["one", "two"]},
        "Mail": {"Type": "String", "AllowedPattern": ".+@.+"},
        "Key": {"Type": "AWS::EC2::KeyPair::KeyName", "Default": "somebodys"},
        "Image": {"Type": "AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>", "Default": "/aws/service/any"},
        "PrimaryIp": {"Type": "String"},
        "SecondaryIp": {"Type": "String"},
    }
    given_ = values(wanted, NEW_ACCOUNT)
    assert given_ == {
        "Vpc": NEW_ACCOUNT.vpc,
        "First": NEW_ACCOUNT.subnets[0],
        "Second": NEW_ACCOUNT.subnets[1],
        "Both": given_["Both"],
        "Size": "3",
        "Kind": "one",
        "Mail": "somebody@example.com",
        "Key": NEW_ACCOUNT.key_pair,
        "PrimaryIp": "172.31.0.18",
        "SecondaryIp": "172.31.0.19",
    }
    assert set(given_["Both"].split(",")) == set(NEW_ACCOUNT.subnets)


def test_a_stack_that_lacks_a_resource_is_not_deployed() -> None:
    listed = [{"LogicalResourceId": "Here", "ResourceType": "AWS::SNS::Topic", "PhysicalResourceId": "arn"}]
    document = {"Resources": {"Here": {"DeletionPolicy": "Retain"}, "Perhaps": {"Condition": "C"}, "There": {}}}
    outcome = Outcome(name="any")
    with pytest.raises(FailedError, match="complete without There"):
        outcome.count(document, listed, frozenset())
    assert (outcome.resources, outcome.stored, outcome.kept) == (1, 1, ["arn"])


def test_the_score_counts_what_is_refused_and_says_why_something_is_not(tmp_path: Path) -> None:
    folder = write(tmp_path / "corpus", wrong_dot_yaml=WRONG)
    trn = trn_in(tmp_path / "home")
    shown = trn("score", str(folder), "--no-plain-moto", "--jobs", "1", "--json", "--minimum", "51")
    assert shown.returncode == 1, shown.stderr
    score = json.loads(shown.stdout)["scores"]["embedded AWS"]
    assert score["wrong"]["counts"] == {"tried": 2, "refused": 1, "answered with a 500": 0}
    assert [one["reason"] for one in score["wrong"]["outcomes"]] == ["", "accepted"]
    assert not (tmp_path / "home").exists(), "the embedded AWS of the user was touched"


def test_the_table_and_the_failures_show_every_score() -> None:
    clean = Outcome(name="a.yaml", deployed=True, updated=True, deleted=True, resources=2, stored=1)
    left = Outcome(name="b.yaml", deployed=True, updated=True, deleted=True, left_behind=["sqs queue"])
    scores = {"one": score_of(clean, left), "other": score_of(clean)}
    lines = score_table(scores).lines(100)
    rows = ["".join(text for text, _ in line).split() for line in lines]
    assert ["templates:", "tried", "2", "1"] in rows
    assert ["templates:", "something", "left", "behind", "1", "0"] in rows
    assert list(failures(scores)) == ["one: b.yaml: left behind: sqs queue"]


def score_of(*templates: Outcome) -> Score:
    return Score(templates=templates, apps=(), wrong=(), seconds=1)


def test_a_folder_without_anything_to_measure_is_an_error(tmp_path: Path) -> None:
    shown = trn_in(tmp_path)("score", str(tmp_path))
    assert shown.returncode == 1
    assert "no template, CDK app or list of wrong deployments" in shown.stderr
