"""VPCs, subnets and the ways out of them."""
