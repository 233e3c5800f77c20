"""VPC, subnets, security groups and endpoints."""
