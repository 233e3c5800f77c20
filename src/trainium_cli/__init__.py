"""The command `trn`: each subcommand is a module NAME_command.py here, with its line in main.py."""
