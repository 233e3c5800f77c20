"""LoggingConfig of a Lambda function: moto drops it, so every function would log to /aws/lambda/<name>."""

from typing import Any


def init(original: Any, function: Any, account_id: str, spec: dict[str, Any], region: str, version: Any = 1) -> None:
    original(function, account_id, spec, region, version)
    _apply(function, spec)


def get_configuration(original: Any, function: Any, *arguments: Any, **named: Any) -> dict[str, Any]:
    configuration = original(function, *arguments, **named)
    own = vars(function).get("logging_config") or {}
    return configuration | {"LoggingConfig": {"LogFormat": "Text", "LogGroup": function.logs_group_name} | own}


def update_configuration(original: Any, function: Any, config_updates: dict[str, Any]) -> dict[str, Any]:
    _apply(function, config_updates)
    return original(function, config_updates)


def _apply(function: Any, spec: dict[str, Any]) -> None:
    config = spec.get("LoggingConfig") or {}
    if config.get("LogGroup"):
        function.logging_config = config
        function.logs_group_name = config["LogGroup"]
