"""CloudFormation stacks that are deployed."""
