"""The command `trn`: a subcommand is SUBJECT/NAME_command.py, and has its line in main.py."""
