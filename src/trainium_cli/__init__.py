"""The command `trn`. The subcommand NAME is SUBJECT/NAME_command.py, with a line in main.py."""
