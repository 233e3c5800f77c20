"""Volumes, images, file systems, buckets."""

from collections.abc import Mapping
from typing import Any

from tests.deploy.leftovers.maker import Creator, Maker


def _volume(maker: Maker) -> str:
    parameters = {"AvailabilityZone": "us-west-2a", "Size": 10, "VolumeType": "gp3"}
    return maker.client("ec2").create_volume(**parameters, TagSpecifications=maker.specification("volume"))["VolumeId"]


def _snapshot(maker: Maker) -> str:
    ec2 = maker.client("ec2")
    volume = ec2.create_volume(AvailabilityZone="us-west-2a", Size=10)["VolumeId"]
    return ec2.create_snapshot(VolumeId=volume, TagSpecifications=maker.specification("snapshot"))["SnapshotId"]


def _image(maker: Maker) -> str:
    ec2 = maker.client("ec2")
    image = ec2.register_image(Name=f"image-of-{maker.cluster}", RootDeviceName="/dev/sda1")["ImageId"]
    ec2.create_tags(Resources=[image], Tags=maker.tags)
    return image


def _fsx(maker: Maker) -> str:
    parameters: dict[str, Any] = {
        "FileSystemType": "LUSTRE",
        "StorageCapacity": 1200,
        "SubnetIds": [maker.create_subnet()],
        "Tags": maker.tags,
    }
    parameters["LustreConfiguration"] = {"DeploymentType": "SCRATCH_2"}
    return maker.client("fsx").create_file_system(**parameters)["FileSystem"]["FileSystemId"]


def _fsx_backup(maker: Maker) -> str:
    fsx = maker.client("fsx")
    parameters: dict[str, Any] = {
        "FileSystemType": "LUSTRE",
        "StorageCapacity": 1200,
        "SubnetIds": [maker.create_subnet()],
    }
    parameters["LustreConfiguration"] = {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 125}
    file_system = fsx.create_file_system(**parameters)["FileSystem"]["FileSystemId"]
    return fsx.create_backup(FileSystemId=file_system, Tags=maker.tags)["Backup"]["BackupId"]


def _efs(maker: Maker) -> str:
    parameters = {"CreationToken": maker.name("efs"), "Tags": maker.tags}
    return maker.client("efs").create_file_system(**parameters)["FileSystemId"]


def _bucket(maker: Maker) -> str:
    s3, name = maker.client("s3"), maker.name("bucket").lower()
    s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    s3.put_bucket_tagging(Bucket=name, Tagging={"TagSet": maker.tags})
    s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    s3.put_object(Bucket=name, Key="graph", Body=b"first")
    s3.put_object(Bucket=name, Key="graph", Body=b"second")
    s3.delete_object(Bucket=name, Key="graph")
    return name


STORAGE: Mapping[str, Creator] = {
    "EBS volume": _volume,
    "EBS snapshot": _snapshot,
    "image": _image,
    "FSx file system": _fsx,
    "FSx backup": _fsx_backup,
    "EFS file system": _efs,
    "S3 bucket": _bucket,
}
