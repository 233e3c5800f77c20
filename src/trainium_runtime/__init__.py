"""The code of the Lambda functions, and decisions that they share with the command line.

Besides trainium_wire, it imports only the standard library and boto3. The functions' code consists of both packages, so
only changes in these two update the deployed functions.
"""
