"""The end of a pilot, and its sleep."""
