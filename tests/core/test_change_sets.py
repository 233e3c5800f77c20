"""Change sets, from CloudFormation's responses."""

import pytest
from botocore.stub import Stubber

from trainium_core.stacks.aws_change_sets import AwsChangeSets
from trainium_core.stacks.change_sets import ChangedProperty, ResourceChange

REQUEST = {"StackName": "S", "ChangeSetName": "C", "IncludePropertyValues": True}


def detail(name: str, evaluation: str, **values: str) -> dict[str, object]:
    cause = {"CausingEntity": "Group.GroupId"} if evaluation == "Dynamic" else {}
    return {"Target": {"Attribute": "Properties", "Name": name, **values}, "Evaluation": evaluation} | cause


@pytest.mark.usefixtures("made_up_credentials")
def test_changes_of_all_pages_have_their_values() -> None:
    account = AwsChangeSets("us-west-2")
    details = [
        detail("A", "Static", AfterValue="2", BeforeValue="1"),
        detail("A", "Dynamic"),
        detail("B", "Dynamic", RequiresRecreation="Always"),
    ]
    change = {
        "ResourceType": "T",
        "Action": "Modify",
        "LogicalResourceId": "L",
        "PhysicalResourceId": "p",
        "Replacement": "False",
        "Details": details,
    }
    stub = Stubber(account.client("cloudformation"))
    stub.activate()
    stub.add_response("describe_change_set", {"Changes": [], "NextToken": "next"}, REQUEST)
    last = {"Changes": [{"Type": "Resource", "ResourceChange": change}]}
    stub.add_response("describe_change_set", last, REQUEST | {"NextToken": "next"})
    assert account.changes("S", "C") == [
        ResourceChange(
            kind="T",
            action="Modify",
            logical_id="L",
            physical_id="p",
            properties={
                "A": ChangedProperty(before="1", after="2", certain=True, causes=frozenset({"Group"})),
                "B": ChangedProperty(causes=frozenset({"Group"}), recreates=True),
            },
        )
    ]
