"""What runs in Lambda functions, and the decisions that they share with the command line.

Standard library and boto3 only. The functions' code is this package and trainium_wire: a change of any file of these,
and of none elsewhere, updates the deployed functions.
"""

__version__ = "1.18.0"
"""Of the functions."""
