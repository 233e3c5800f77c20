"""What ends a pilot, or puts it to sleep."""
