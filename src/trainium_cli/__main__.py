"""`python -m trainium_cli`: `trn` where no script is installed, such as in the code of a Lambda function."""

from trainium_cli.start import main

main()
