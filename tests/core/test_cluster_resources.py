"""Which resources of a template belong to a cluster."""

from typing import Any

from trainium_core.stacks.cluster_resources import cluster_resources, clusters_in

TAGS = [{"Key": "trn:cluster", "Value": "web-train"}]


def resource(kind: str, **properties: Any) -> dict[str, Any]:
    return {"Type": kind, "Properties": properties}


def of_fleet(cluster: str = "web-train", prefix: str = "") -> dict[str, Any]:
    """The nodes of a cluster, as NeuronFleet defines them in a template."""
    tags = [{"Key": "trn:cluster", "Value": cluster}]
    return {
        f"{prefix}Template": resource(
            "AWS::EC2::LaunchTemplate",
            LaunchTemplateData={"InstanceType": "trn1.32xlarge", "InstanceMarketOptions": {"MarketType": "spot"}},
            TagSpecifications=[{"ResourceType": "launch-template", "Tags": tags}],
        ),
        f"{prefix}Group": resource(
            "AWS::AutoScaling::AutoScalingGroup",
            LaunchTemplate={"LaunchTemplateId": {"Ref": f"{prefix}Template"}},
            MaxSize="4",
            Tags=[{**tags[0], "PropagateAtLaunch": True}],
        ),
        f"{prefix}FleetReadiness": resource(
            "Custom::TrnFleetReadiness",
            Settings={
                "GROUP": {"Ref": f"{prefix}Group"},
                "RECORDS_BUCKET": {"Ref": f"{prefix}Records"},
                "REPLACEMENTS": "2",
                "ENDS": "120h",
            },
        ),
        f"{prefix}Records": resource("AWS::S3::Bucket", Tags=tags),
    }


OF_AN_APP = {
    **of_fleet(),
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


def test_two_clusters_in_a_stack_have_separate_resources() -> None:
    both = {**of_fleet(), **of_fleet("other", "Other")}
    assert clusters_in(both) == ("web-train", "other")
    assert "OtherGroup" not in cluster_resources(both, "web-train")
