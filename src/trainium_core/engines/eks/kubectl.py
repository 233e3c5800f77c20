"""Runs the user's kubectl against the EKS cluster of a plan."""

import json
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from trainium_core.jobs.aws_scheduled_jobs import NoAnswerError
from trainium_runtime.errors import RequestRefusedError, UnavailableError
from trainium_wire.formats import one_line

_SECONDS = 60
_LONGEST_MESSAGE = 400
_ABSENT = "(NotFound)"
_UNANSWERED = (
    *("(Timeout)", "(ServerTimeout)", "deadline exceeded", "Client.Timeout"),
    *("EOF", "read tcp", "connection reset", "connection lost", "broken pipe"),
)
"""Messages of kubectl, the API server and Go's HTTP client after which the API server may have received a request."""


class Kubectl:
    """kubectl with the context of an EKS cluster.

    Reads raise UnavailableError. Changes raise RequestRefusedError, NoAnswerError if they may have been made, and
    UnavailableError if they were not requested.

    Args:
        cluster: Name of the EKS cluster.
        region: Region of the EKS cluster.
        account: Returns the ID of its account, or raises UnavailableError.
        namespace: Namespace of the objects.
    """

    def __init__(self, cluster: str, region: str, account: Callable[[], str], namespace: str) -> None:
        self._cluster, self._region, self._account, self._namespace = cluster, region, account, namespace

    def items(self, kinds: str, selector: str) -> Sequence[Mapping[str, Any]]:
        """The objects of some kinds with a label."""
        return self._json("get", kinds, "--selector", selector, "--output", "json").get("items", ())

    def has(self, kind: str, name: str) -> bool:
        """Whether an object exists."""
        return bool(self._json("get", kind, name, "--output", "json", absent=True))

    def apply(self, objects: Iterable[Mapping[str, Any]]) -> None:
        """Create the objects, unless they exist. Server-side: other annotations would hold a copy of the program."""
        listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*objects]})
        self._change("apply", "--server-side", "--field-manager", "trn", "--filename", "-", stdin=listed)

    def delete(self, kind: str, name: str) -> None:
        """Delete an object, if it exists, without waiting for its pods."""
        self._change("delete", kind, name, "--ignore-not-found", "--wait=false")

    @cached_property
    def _context(self) -> str:
        shown = _completed(["config", "view", "--output", "json"])
        if shown.returncode:
            raise UnavailableError(f"kubectl config view: {_message(shown)}")
        account = self._account()
        found = cluster_context(json.loads(shown.stdout), self._cluster, self._region, account)
        if found is None:
            update = f"aws eks update-kubeconfig --region {self._region} --name {self._cluster}"
            absent = f"kubectl has no context of the EKS cluster {self._cluster} of account {account}"
            raise UnavailableError(f"{absent}: run `{update}`")
        return found

    def _json(self, *arguments: str, absent: bool = False) -> Mapping[str, Any]:
        completed = self._run(*arguments)
        if not completed.returncode:
            return json.loads(completed.stdout)
        if absent and _ABSENT in completed.stderr:
            return {}
        raise UnavailableError(f"kubectl {arguments[0]} {arguments[1]}: {_message(completed)}")

    def _change(self, *arguments: str, stdin: str = "") -> None:
        completed = self._run(*arguments, stdin=stdin)
        if completed.returncode:
            is_unanswered = any(text in completed.stderr for text in _UNANSWERED)
            error = NoAnswerError if is_unanswered else RequestRefusedError
            raise error(f"kubectl {arguments[0]}: {_message(completed)}")

    def _run(self, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        place = ["--context", self._context, "--namespace", self._namespace]
        return _completed([*arguments, *place, f"--request-timeout={_SECONDS // 2}s"], stdin)


def cluster_context(config: Mapping[str, Any], cluster: str, region: str, account: str) -> str | None:
    """The context of an EKS cluster in a kubeconfig, the current one first; None without one.

    `aws eks update-kubeconfig` names the entry of the cluster by its ARN. The entries of eksctl,
    NAME.REGION.eksctl.io, do not count: they do not say in which account the cluster is.
    """
    wanted = ["eks", region, account, f"cluster/{cluster}"]
    found = [
        context["name"]
        for context in config.get("contexts") or ()
        if context["context"].get("cluster", "").split(":")[2:] == wanted
    ]
    current = config.get("current-context")
    return current if current in found else next(iter(found), None)


def _completed(arguments: Sequence[str], stdin: str = "") -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            ["kubectl", *arguments], input=stdin, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except FileNotFoundError:
        raise UnavailableError("kubectl is not in the PATH: install it, see docs/guides/eks.md") from None
    except subprocess.TimeoutExpired as error:
        raise NoAnswerError(f"kubectl {arguments[0]} did not end within {_SECONDS} seconds") from error
    except OSError as error:
        raise UnavailableError(f"kubectl: {error}") from error


def _message(completed: "subprocess.CompletedProcess[str]") -> str:
    text = completed.stderr.strip() or f"it ended with exit code {completed.returncode}"
    return one_line(text, _LONGEST_MESSAGE)
