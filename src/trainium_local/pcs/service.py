"""Adds AWS PCS to moto's services."""

import re
import sys

from moto import backend_index

from trainium_local.pcs import models
from trainium_local.pcs.urls import url_bases


def install() -> None:
    """Register the service with moto: its host name, and its models as the module moto.pcs."""
    sys.modules["moto.pcs"] = models
    known = ("pcs", re.compile(url_bases[0]))
    if known not in backend_index.backend_url_patterns:
        backend_index.backend_url_patterns.append(known)
