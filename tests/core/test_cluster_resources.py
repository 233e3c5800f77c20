"""Which resources of a template belong to a cluster."""

from typing import Any

from trainium_core.stacks.cluster_resources import cluster_resources

TAGS = [{"Key": "trn:cluster", "Value": "web-train"}]


def resource(kind: str, **properties: Any) -> dict[str, Any]:
    return {"Type": kind, "Properties": properties}


OF_AN_APP = {
    "Template": resource(
        "AWS::EC2::LaunchTemplate",
        TagSpecifications=[{"ResourceType": "launch-template", "Tags": TAGS}],
    ),
    "Group": resource("AWS::AutoScaling::AutoScalingGroup", Tags=[{**TAGS[0], "PropagateAtLaunch": True}]),
    "FleetReadiness": resource("Custom::TrnFleetReadiness", Settings={"GROUP": {"Ref": "Group"}}),
    "Records": resource("AWS::S3::Bucket", Tags=TAGS),
    "Vpc": resource("AWS::EC2::VPC"),
    "Route": resource("AWS::EC2::Route", RouteTableId={"Ref": "Table"}),
    "Site": resource("AWS::AutoScaling::AutoScalingGroup", Tags=[{"Key": "team", "Value": "web"}]),
    "Dataset": resource("AWS::S3::Bucket"),
    "DatasetPolicy": resource("AWS::S3::BucketPolicy", Bucket={"Ref": "Dataset"}),
    "RecordsPolicy": resource("AWS::S3::BucketPolicy", Bucket={"Ref": "Records"}),
    "Emptier": resource(
        "AWS::Lambda::Function",
        Handler="trainium_runtime.handlers.empty_bucket.handle",
        Role={"Fn::GetAtt": ["EmptierRole", "Arn"]},
        LoggingConfig={"LogGroup": {"Ref": "EmptierLog"}},
    ),
    "EmptierRole": resource("AWS::IAM::Role"),
    "EmptierLog": resource("AWS::Logs::LogGroup"),
    "Budget": resource("AWS::Budgets::Budget", Budget={"CostFilters": {"TagKeyValue": ["user:trn:cluster$web-train"]}}),
    "FileSystem": resource("AWS::EFS::FileSystem", FileSystemTags=TAGS),
    "Note": resource("AWS::SSM::Parameter", Tags={"trn:cluster": "web-train"}),
}


def test_resource_belongs_to_a_cluster_by_tag_handler_or_reference() -> None:
    others = OF_AN_APP.keys() - cluster_resources(OF_AN_APP, "web-train")
    assert others == {"Vpc", "Route", "Site", "Dataset", "DatasetPolicy"}
