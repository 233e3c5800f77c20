"""Change sets, as `cdk diff` and `cdk deploy` read them."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local.conftest import EmbeddedAws
from tests.local.stacks import Stacks, parameter, template


@pytest.fixture
def stacks(embedded_aws: EmbeddedAws) -> Stacks:
    return Stacks(embedded_aws)


def changes(change_set: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {change["ResourceChange"]["LogicalResourceId"]: change["ResourceChange"] for change in change_set["Changes"]}


def details(change: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [
        (detail["Target"]["Name"], detail["Target"]["RequiresRecreation"], detail["Evaluation"])
        for detail in change["Details"]
    ]


def test_change_set_lists_added_modified_and_removed_resources(stacks: Stacks) -> None:
    name = stacks.deploy(template({"M": parameter("old"), "R": parameter(), "Same": parameter()}))
    change_set = stacks.change_set(name, template({"M": parameter("new"), "A": parameter(), "Same": parameter()}))
    actions = {logical_id: change["Action"] for logical_id, change in changes(change_set).items()}
    assert actions == {"M": "Modify", "A": "Add", "R": "Remove"}


def test_change_set_names_changed_properties_and_replacement(stacks: Stacks) -> None:
    name = stacks.deploy(template({"M": parameter("old")}))
    renamed = parameter("new")
    renamed["Properties"]["Name"] = "another"
    made = stacks.change_set(name, template({"M": renamed}))
    change = changes(made)["M"]
    assert details(change) == [("Name", "Always", "Static"), ("Value", "Never", "Static")]
    assert change["Replacement"] == "True"
    assert "AfterValue" not in change["Details"][1]["Target"]
    described = stacks.api.describe_change_set(ChangeSetName=made["ChangeSetId"], IncludePropertyValues=True)
    target = changes(described)["M"]["Details"][1]["Target"]
    assert (target["BeforeValue"], target["AfterValue"]) == ("old", "new")


def test_conditionally_create_only_property_may_replace(stacks: Stacks) -> None:
    def network(**properties: Any) -> dict[str, Any]:
        vpc = {"CidrBlock": "10.0.0.0/16", **properties}
        return template({"V": {"Type": "AWS::EC2::VPC", "Properties": vpc}})

    name = stacks.deploy(network())
    change = changes(stacks.change_set(name, network(InstanceTenancy="dedicated")))["V"]
    assert details(change) == [("InstanceTenancy", "Conditionally", "Static")]
    assert change["Replacement"] == "Conditional"


def test_resource_that_refers_to_a_replaced_one_is_modified(stacks: Stacks) -> None:
    renamed = parameter()
    renamed["Properties"]["Name"] = "renamed"
    name = stacks.deploy(template({"A": parameter(), "B": parameter({"Ref": "A"})}))
    change = changes(stacks.change_set(name, template({"A": renamed, "B": parameter({"Ref": "A"})})))["B"]
    assert details(change) == [("Value", "Never", "Dynamic")]


def test_empty_change_set_fails_with_the_text_that_clients_expect(stacks: Stacks) -> None:
    name = stacks.deploy(template({"M": parameter()}))
    change_set = stacks.change_set(name, template({"M": parameter()}))
    assert change_set["Status"] == "FAILED"
    assert change_set["StatusReason"].startswith("The submitted information didn't contain changes.")
    stacks.api.delete_change_set(ChangeSetName=change_set["ChangeSetId"])
    change_set = stacks.change_set(name, template({"M": parameter()}, Outputs={"O": {"Value": "o"}}))
    assert (change_set["Status"], change_set["Changes"]) == ("CREATE_COMPLETE", [])


def test_unresolved_values_do_not_count_as_duplicates(stacks: Stacks) -> None:
    topics = {name: {"Type": "AWS::SNS::Topic"} for name in ("One", "Other")}
    both = [{"Ref": "One"}, {"Ref": "Other"}]
    balancer = {"Type": "AWS::ElasticLoadBalancingV2::LoadBalancer", "Properties": {"Subnets": both}}
    made = stacks.change_set("not-known-yet", template({**topics, "Balancer": balancer}), ChangeSetType="CREATE")
    assert made["Status"] == "CREATE_COMPLETE", made["StatusReason"]


def test_change_sets_of_two_stacks_may_have_one_name(stacks: Stacks) -> None:
    first, second = (stacks.deploy(template({"M": parameter("old")})) for _ in range(2))
    for name, value in ((first, "one"), (second, "two")):
        stacks.change_set(name, template({"M": parameter(value)}), ChangeSetName="cdk")
    for name in (first, second):
        stacks.api.execute_change_set(ChangeSetName="cdk", StackName=name)
        stacks.settled(name)
    assert (stacks.value_of(first, "M"), stacks.value_of(second, "M")) == ("one", "two")


def test_create_change_set_leaves_stack_in_review(stacks: Stacks) -> None:
    stacks.change_set("in-review", template({"M": parameter()}), ChangeSetType="CREATE")
    assert stacks.delete("in-review") == "DELETE_COMPLETE"
    change_set = stacks.change_set("in-review", template({"M": parameter()}), ChangeSetType="CREATE")
    assert stacks.describe("in-review")["StackStatus"] == "REVIEW_IN_PROGRESS"
    stacks.api.execute_change_set(ChangeSetName=change_set["ChangeSetId"])
    assert stacks.settled("in-review") == "CREATE_COMPLETE"


def test_change_set_is_executed_once(stacks: Stacks) -> None:
    name = stacks.deploy(template({"M": parameter("old")}))
    change_set = stacks.change_set(name, template({"M": parameter("new")}))
    assert stacks.value_of(name, "M") == "old"
    stacks.api.execute_change_set(ChangeSetName=change_set["ChangeSetId"])
    assert stacks.settled(name) == "UPDATE_COMPLETE"
    assert stacks.value_of(name, "M") == "new"
    with pytest.raises(ClientError, match=r"current execution status of \[EXECUTE_COMPLETE\]"):
        stacks.api.execute_change_set(ChangeSetName=change_set["ChangeSetId"])
    assert stacks.api.list_change_sets(StackName=name)["Summaries"] == []


def test_change_set_is_obsolete_after_another_update(stacks: Stacks) -> None:
    name = stacks.deploy(template({"M": parameter("old")}))
    change_set = stacks.change_set(name, template({"M": parameter("new")}))
    stacks.update(name, template({"M": parameter("newer")}))
    with pytest.raises(ClientError, match=r"current execution status of \[OBSOLETE\]"):
        stacks.api.execute_change_set(ChangeSetName=change_set["ChangeSetId"])


def test_deletion_of_unknown_change_set_requires_an_existing_stack(stacks: Stacks) -> None:
    name = stacks.deploy(template({"M": parameter()}))
    stacks.api.delete_change_set(ChangeSetName="none", StackName=name)
    with pytest.raises(ClientError, match="does not exist"):
        stacks.api.delete_change_set(ChangeSetName="none", StackName="none")
    with pytest.raises(ClientError) as refusal:
        stacks.api.describe_change_set(ChangeSetName="none", StackName="none")
    assert refusal.value.response["Error"]["Code"] == "ChangeSetNotFound"
