"""What a cluster left in an account, and what that costs. Everything here only reads."""
