"""Commands that assess code for Trainium."""
