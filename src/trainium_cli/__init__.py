"""The command `trn`. A subcommand is SUBJECT/NAME_command.py, with a line in main.py."""
