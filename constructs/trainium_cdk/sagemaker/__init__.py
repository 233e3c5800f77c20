"""Training jobs of SageMaker."""
