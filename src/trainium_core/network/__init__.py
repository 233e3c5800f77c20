"""Availability Zones, placement groups, and VPCs with their subnets, routes and endpoints."""
