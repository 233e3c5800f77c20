"""Nodes for Amazon EKS clusters."""
