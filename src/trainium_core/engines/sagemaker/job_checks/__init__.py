"""What is asked about a training job before it is started."""
