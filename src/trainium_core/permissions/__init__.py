"""The IAM permissions of people and of CloudFormation, as policies, and their simulation."""
