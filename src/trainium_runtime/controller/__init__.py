"""The controller of a cluster: it reads a snapshot, decides, and acts.

`settings`, `snapshot` and `actions` are values. `nodes`, `pilot` and `deployment` decide, without requests to AWS.
`reading` and `execution` make all requests.
"""
