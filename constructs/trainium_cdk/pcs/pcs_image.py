"""An image for AWS PCS, built by EC2 Image Builder from a Neuron image."""

import hashlib

from aws_cdk import RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_imagebuilder as imagebuilder
from aws_cdk import aws_logs as logs
from constructs import Construct

from trainium_cdk.justification import justify
from trainium_cdk.service_role import service_role
from trainium_core.facts import facts
from trainium_runtime.naming import CLUSTER_TAG
from trainium_userdata.pcs_image import pcs_image_component

_VERSION = "1.0.0"
_BUILD_POLICIES = ("AmazonSSMManagedInstanceCore", "EC2InstanceProfileForImageBuilder")
_DELETION_POLICY = "service-role/EC2ImageBuilderLifecycleExecutionPolicy"
_DIGEST_CHARACTERS = 12


class PcsImage(Construct):
    """A Neuron image with the agent of AWS PCS and Slurm. `image_id` is its ID.

    The first deployment builds the image, which takes about an hour. A later deployment builds it again only if the
    component or the reference to the parent image changes: the names of the resources contain a digest of both. The
    image, its snapshot and the log of the build are deleted with the stack.
    """

    image_id: str

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        region: str,
        parent_image: str,
        subnet: ec2.ISubnet,
        security_group: ec2.ISecurityGroup,
    ) -> None:
        """
        Args:
            cluster_name: Prefix of the resources' names, and value of the tag trn:cluster.
            region: Region of the stack.
            parent_image: An image with Ubuntu and Neuron software: its ID, or the name of an SSM parameter.
            subnet: Subnet of the build instance, which needs the internet.
            security_group: Security group of the build instance.
        """
        super().__init__(scope, construct_id)
        document = pcs_image_component(region)
        digest = hashlib.sha256(f"{parent_image}\n{document}".encode()).hexdigest()[:_DIGEST_CHARACTERS]
        name, tags = f"{cluster_name}-pcs-{digest}", {CLUSTER_TAG: cluster_name}
        component = imagebuilder.CfnComponent(
            self, "Component", name=name, platform="Linux", version=_VERSION, data=document
        )
        recipe = imagebuilder.CfnImageRecipe(
            self,
            "Recipe",
            name=name,
            version=_VERSION,
            parent_image=f"ssm:{parent_image}" if parent_image.startswith("/") else parent_image,
            components=[imagebuilder.CfnImageRecipe.ComponentConfigurationProperty(component_arn=component.attr_arn)],
            ami_tags=tags,
        )
        profile = iam.InstanceProfile(
            self, "Profile", role=self._role("Builder", "ec2.amazonaws.com", *_BUILD_POLICIES)
        )
        infrastructure = imagebuilder.CfnInfrastructureConfiguration(
            self,
            "Infrastructure",
            name=name,
            instance_profile_name=profile.instance_profile_name,
            instance_types=[facts()["pcs"]["installers"]["build_type"]],
            instance_metadata_options=imagebuilder.CfnInfrastructureConfiguration.InstanceMetadataOptionsProperty(
                http_tokens="required"
            ),
            subnet_id=subnet.subnet_id,
            security_group_ids=[security_group.security_group_id],
            resource_tags=tags,
        )
        # With a name of this form, the policies of Image Builder's roles allow its log; without it, it never expires.
        log = logs.LogGroup(
            self,
            "Log",
            log_group_name=f"/aws/imagebuilder/{name}",
            retention=logs.RetentionDays.ONE_MONTH,
            removal_policy=RemovalPolicy.DESTROY,
        )
        justify(
            log,
            checkov={
                "CKV_AWS_158": "holds no secrets; the service's own encryption applies",
                "CKV_AWS_338": "the log of a build, not needed after the pilot",
            },
        )
        deletion = self._role("Deletion", "imagebuilder.amazonaws.com", _DELETION_POLICY)
        image = imagebuilder.CfnImage(
            self,
            "Image",
            image_recipe_arn=recipe.attr_arn,
            infrastructure_configuration_arn=infrastructure.attr_arn,
            # A test would launch another instance; the build itself reads the versions that it installed.
            image_tests_configuration=imagebuilder.CfnImage.ImageTestsConfigurationProperty(image_tests_enabled=False),
            logging_configuration=imagebuilder.CfnImage.ImageLoggingConfigurationProperty(
                log_group_name=log.log_group_name
            ),
            deletion_settings=imagebuilder.CfnImage.DeletionSettingsProperty(execution_role=deletion.role_arn),
        )
        image.node.add_dependency(profile, subnet, security_group)
        self.image_id = image.attr_image_id

    def _role(self, construct_id: str, service: str, *policies: str) -> iam.IRole:
        """A role with the AWS managed policies that Image Builder's documentation requires."""
        role = service_role(self, construct_id, service)
        for name in policies:
            role.add_managed_policy(iam.ManagedPolicy.from_aws_managed_policy_name(name))
        why = "the policies that EC2 Image Builder documents for builds and for the deletion of images"
        findings = {f"IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{name}]": why for name in policies}
        justify(role, cdk_nag=findings)
        return role
