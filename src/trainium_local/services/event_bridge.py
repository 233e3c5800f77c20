"""EventBridge: rules that invoke Lambda functions, and events that services emit.

moto's rules do not invoke functions, and its S3 events differ from AWS's documentation.
"""

import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from datetime import UTC, datetime
from typing import Any

from moto.events.models import events_backends

from trainium_local.permissions import enforcement
from trainium_local.services import lambda_process

Event = dict[str, Any]

_listeners: list[Callable[[Event], None]] = []


def when_emitted(listener: Callable[[Event], None]) -> None:
    """Call `listener` with every later event of the account's services, each in a new thread."""
    _listeners.append(listener)


def emit(
    account_id: str,
    region: str,
    *,
    source: str,
    detail_type: str,
    detail: Mapping[str, Any],
    resources: Sequence[str] = (),
) -> None:
    """Send a service's event to the rules of the default bus. Returns at once: EventBridge is asynchronous."""
    event: Event = {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": detail_type,
        "source": source,
        "account": account_id,
        "time": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "region": region,
        "resources": list(resources),
        "detail": dict(detail),
    }
    threading.Thread(target=_deliver, args=(account_id, region, event), daemon=True, name=detail_type).start()


def send_to_targets(original: Any, rule: Any, original_event: Event, transform_input: bool = True) -> None:
    """Invoke functions with the event, each in a new thread; moto handles every other target."""
    # A scheduled rule has no pattern, which moto treats as a match.
    if rule.state != "ENABLED" or not rule.event_pattern.get_pattern():
        return
    if not rule.event_pattern.matches_event(original_event):
        return
    functions = [target for target in rule.targets if ":lambda:" in target["Arn"]]
    for target in functions:
        threading.Thread(target=_call, args=(target["Arn"], rule.arn, original_event), daemon=True).start()
    others = copy(rule)
    others.targets = [target for target in rule.targets if target not in functions]
    if others.targets:
        original(others, original_event, transform_input)


def send_object_event(account_id: str, bucket: Any, event_name: str, key: Any) -> None:
    """Emit the event `Object Created`. moto calls this for buckets that send events to EventBridge."""
    if not event_name.startswith("s3:ObjectCreated:"):
        return
    emit(
        account_id,
        bucket.region_name,
        source="aws.s3",
        detail_type="Object Created",
        detail={
            "version": "0",
            "bucket": {"name": bucket.name},
            "object": {"key": key.name, "size": key.size, "etag": key.etag.strip('"')},
            "requester": account_id,
            "reason": "PutObject",
        },
        resources=[bucket.arn],
    )


def _deliver(account_id: str, region: str, event: Event) -> None:
    for listener in list(_listeners):
        listener(event)
    rules: Any = events_backends[account_id][region].event_buses["default"].rules
    for rule in list(rules.values()):
        rule.send_to_targets(event, transform_input=False)


def _call(arn: str, rule_arn: str, event: Event) -> None:
    lambda_process.call(
        arn,
        event,
        caller="EventBridge",
        check=lambda function: enforcement.refuse_invocation(function, "events.amazonaws.com", rule_arn),
    )
