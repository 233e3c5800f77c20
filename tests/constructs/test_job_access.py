"""allow_jobs: the permissions of nodes outside the cluster's bucket, for jobs."""

from aws_cdk import aws_iam as iam

from tests.constructs.synth import granted, new_stack, statements, synthesize
from trainium_cdk.fleet.job_access import allow_jobs
from trainium_core.plan.settings.jobs import JobAccess

PARAMETER = "arn:aws:ssm:us-west-2:123456789012:parameter/token"
SECRET = "arn:aws:secretsmanager:us-west-2:123456789012:secret:token-AbCdEf"


def allowed(access: JobAccess) -> set[tuple[str, str]]:
    stack = new_stack()
    role = iam.Role(stack, "Node", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
    allow_jobs(stack, role, access)
    return granted(statements(synthesize(stack)))


def test_nothing_is_allowed_without_settings() -> None:
    assert allowed(JobAccess()) == set()


def test_only_named_folders_and_secrets_are_allowed() -> None:
    access = JobAccess(inputs=("s3://data/a/b/",), checkpoints="s3://mine/kept", secrets=(PARAMETER, SECRET))
    s3 = "arn:aws:s3:::"
    assert allowed(access) == {
        ("s3:GetObject", f"{s3}data/a/b/*"),
        ("s3:ListBucket", f"{s3}data"),
        ("s3:GetObject", f"{s3}mine/kept/*"),
        ("s3:PutObject", f"{s3}mine/kept/*"),
        ("s3:ListBucket", f"{s3}mine"),
        ("ssm:GetParameter", PARAMETER),
        ("secretsmanager:GetSecretValue", SECRET),
    }
