"""A compile cache on a node, filled from S3 and written back to it: Python 3.8 or later, standard library only.

It knows nothing of jobs: the caller fills the folder before the compiler runs, stores new entries meanwhile and at the
end,
and asks what was used.
"""
