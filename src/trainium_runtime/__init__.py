"""What runs in Lambda functions, and what they share with the nodes and the command line.

Standard library and boto3 only. The functions' code is this package and nothing else: a change of any file here, and
of none elsewhere, updates the deployed functions.
"""

__version__ = "1.10.0"
"""Of the functions."""
