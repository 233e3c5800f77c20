"""Commands about what a plan or a cluster costs."""
