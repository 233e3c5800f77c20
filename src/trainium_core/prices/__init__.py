"""What AWS asks for things: its price list, a user's own file, and the snapshot in this package."""
