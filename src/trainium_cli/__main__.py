"""Runs `trn` with `python -m trainium_cli`, for example in a Lambda function."""

from trainium_cli.start import main

if __name__ == "__main__":
    main()
