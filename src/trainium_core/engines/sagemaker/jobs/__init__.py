"""Training jobs of SageMaker: the same plan, without machines to keep."""
