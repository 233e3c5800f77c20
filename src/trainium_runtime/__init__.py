"""The code of the Lambda functions, and decisions that they share with the command line.

Standard library and boto3 only. The functions' code is this package and trainium_wire, so only changes in these two
update the deployed functions.
"""

__version__ = "1.22.20"
"""Version of the functions."""
