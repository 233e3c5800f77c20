"""IAM policies, enforced: the setting `iam`. What is evaluated and what not: docs/project/embedded-aws.md."""
