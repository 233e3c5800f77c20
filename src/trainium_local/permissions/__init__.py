"""Evaluation of IAM policies: the setting `iam`. Limits: docs/project/embedded-aws.md."""
