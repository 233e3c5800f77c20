"""SageMaker training jobs: the request, its rules, and the entry point of the container."""
