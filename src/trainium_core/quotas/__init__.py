"""What a plan needs of the quotas of EC2 and SageMaker."""
