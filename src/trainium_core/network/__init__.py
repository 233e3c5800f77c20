"""VPCs, subnets and their routes."""
