"""Types whose text is a document: state machines, documents of Systems Manager, secrets."""

import json
from collections.abc import Mapping
from typing import Any

from trainium_local.resources.api_resource import ApiResource, ReadableResource
from trainium_local.resources.registry import Properties, Request


class _StateMachine(ApiResource):
    def adapt(self, properties: Properties) -> Properties:
        given = properties.get("DefinitionString") or properties.get("Definition")
        definition = given if isinstance(given, str) else json.dumps(given)
        for name, value in (properties.get("DefinitionSubstitutions") or {}).items():
            definition = definition.replace(f"${{{name}}}", str(value))
        return {**properties, "definition": definition}


class _Document(ApiResource):
    def adapt(self, properties: Properties) -> Properties:
        return {"DocumentType": "Command", "DocumentFormat": "JSON", **properties}


class _Secret(ReadableResource):
    """A secret whose text may be generated."""

    def _create_arguments(self, request: Request, facts: Mapping[str, Any]) -> dict[str, Any]:
        arguments = super()._create_arguments(request, facts)
        wanted = request.properties.get("GenerateSecretString")
        if wanted is None:
            return arguments
        text = self.call(request, "GetRandomPassword", wanted)["RandomPassword"]
        if "GenerateStringKey" in wanted:
            template = json.loads(wanted.get("SecretStringTemplate") or "{}")
            text = json.dumps({**template, wanted["GenerateStringKey"]: text})
        return {**arguments, "SecretString": text}


KINDS: dict[str, type[ApiResource]] = {
    "AWS::SSM::Document": _Document,
    "AWS::SecretsManager::Secret": _Secret,
    "AWS::StepFunctions::StateMachine": _StateMachine,
}
