"""Commands that prepare this machine and a folder, show reference data, and help with errors."""
