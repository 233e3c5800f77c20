"""Prices: AWS's price list, a user's file, and the snapshot in this package."""
