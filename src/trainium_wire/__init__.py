"""What nodes, Lambda functions and the command line exchange through S3: keys, formats and records.

Standard library only, Python 3.8 or later: it is shipped to the functions and to the nodes.
"""
