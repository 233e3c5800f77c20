"""Keys, formats and records that nodes, Lambda functions and the command line exchange through S3.

Standard library only, Python 3.8 or later, because it runs on functions and nodes.
"""
