"""Which calls were made, and how often, for the report of an audit."""

from collections import Counter
from collections.abc import Mapping
from threading import Lock
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError

from trainium_runtime.errors import UnavailableError


class CallLog:
    """A boto3 session that counts the calls of its clients, threads or not.

    Raises UnavailableError without one, such as for a profile that does not exist.
    """

    def __init__(self) -> None:
        try:
            self.session: Any = boto3.Session()
        except BotoCoreError as error:
            raise UnavailableError(str(error)) from error
        self._counts: Counter[str] = Counter()
        self._lock = Lock()
        self.session.events.register("before-call", self._count)

    @property
    def calls(self) -> Mapping[str, int]:
        with self._lock:
            return dict(sorted(self._counts.items()))

    def _count(self, *, model: Any, **_: Any) -> None:
        with self._lock:
            self._counts[f"{model.service_model.service_name}:{model.name}"] += 1
