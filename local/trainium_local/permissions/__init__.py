"""IAM policies, enforced: `trn local start --iam enforced`. What is evaluated and what not: docs/embedded-aws.md."""
