"""Ends, budgets and idle limits of fleets that are refused at synthesis, in the form of refused_fleets.py."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, cast

from aws_cdk import App, Duration, Environment, Stack, Token
from aws_cdk import aws_sns as sns

from trainium_cdk import Budget, PilotEnd

NUMBER = Token.as_number({"Ref": "Nodes"})


def topic(region: str = "us-west-2", *, fifo: bool = False) -> sns.Topic:
    stack = Stack(App(), "Topics", env=Environment(region=region))
    return sns.Topic(stack, "Topic", fifo=fifo or None)


REFUSED_PILOTS: Mapping[str, tuple[Callable[[], Mapping[str, Any]], str, str]] = {
    "lifetime of minutes": (
        lambda: {"end": PilotEnd.after(Duration.minutes(90))},
        "lifetime",
        "got 1 hour 30 minutes; allowed: a whole number of hours; fix: round it, for example to Duration.hours(2)",
    ),
    "lifetime of a token": (
        lambda: {"end": PilotEnd.after(Duration.hours(Token.as_number({"Ref": "Hours"})))},
        "lifetime",
        "got a CDK token; allowed: a duration known at synthesis",
    ),
    "lifetime of two years": (
        lambda: {"end": PilotEnd.after(Duration.days(730))},
        "lifetime",
        "more than zero and at most 366 days",
    ),
    "warning of minutes": (
        lambda: {"end": PilotEnd.after(Duration.days(2), warn_before=Duration.minutes(30))},
        "warn_before",
        "a whole number of hours",
    ),
    "warning of a token in another unit": (
        lambda: {
            "end": PilotEnd.after(Duration.days(2), warn_before=Duration.minutes(Token.as_number({"Ref": "Minutes"})))
        },
        "warn_before",
        "got a CDK token",
    ),
    "warning of a month": (
        lambda: {"end": PilotEnd.after(Duration.days(60), warn_before=Duration.days(30))},
        "warn_before",
        "1 to 336 hours",
    ),
    "end without zone": (lambda: {"end": PilotEnd.at(datetime(2030, 1, 1))}, "time", "pass tzinfo"),
    "unknown action at the end": (
        lambda: {"end": PilotEnd.after(Duration.days(1), action=cast(Any, "stop"))},
        "action",
        "sleep, destroy",
    ),
    "budget of nothing": (lambda: {"budget": Budget.usd(0)}, "amount", "a whole number, 1 or more"),
    "budget token": (lambda: {"budget": Budget.usd(cast(Any, NUMBER))}, "amount", "known at synthesis"),
    "address without end": (
        lambda: {"notify_email": "a@example.com"},
        "notify_email",
        "set end, budget, idle_limit, job_notices or a Capacity Block too",
    ),
    "topic without end": (
        lambda: {"notices": topic()},
        "notices",
        "set end, budget, idle_limit, job_notices or a Capacity Block too",
    ),
    "topic and address": (
        lambda: {"budget": Budget.usd(1), "notices": topic(), "notify_email": "a@example.com"},
        "notify_email",
        "no address together with notices",
    ),
    "FIFO topic": (
        lambda: {"budget": Budget.usd(1), "notices": topic(fifo=True)},
        "notices",
        "a standard topic",
    ),
    "topic of another region": (
        lambda: {"budget": Budget.usd(1), "notices": topic(region="eu-west-1")},
        "notices",
        "a topic of us-west-2",
    ),
    "idle limit of seconds": (
        lambda: {"idle_limit": Duration.seconds(1850)},
        "idle_limit",
        "a whole number of minutes",
    ),
    "idle limit of a minute": (lambda: {"idle_limit": Duration.minutes(1)}, "idle_limit", "30 to 10080 minutes"),
}
