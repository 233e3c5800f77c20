"""What a stored resource is given in its service's place keeps to the type's own schema."""

import re
from typing import Any

from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER
from hypothesis import given
from hypothesis import strategies as st

from trainium_local.resources import schemas
from trainium_local.resources.generic import GenericStore
from trainium_local.resources.registry import Provisioned, Request

REGION = "us-west-2"
TYPES = sorted(name for name in PROVIDER_SCHEMA_MANAGER.get_resource_types(REGION) if name.startswith("AWS::"))


def takes(schema: dict[str, Any], value: Any) -> bool:
    if not isinstance(value, str):
        return "string" not in str(schema.get("type", "string"))
    try:
        fits = re.search(schema.get("pattern", ""), value) is not None
    except re.error:  # in Java's dialect
        fits = True
    return fits and schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value))


def stored(resource_type: str, **properties: Any) -> Provisioned:
    request = Request(
        account="123456789012",
        region=REGION,
        stack_name="a-stack",
        stack_id="id",
        logical_id="Resource",
        resource_type=resource_type,
        properties=properties,
    )
    return GenericStore().create(request)


def test_the_reference_of_a_job_definition_is_its_arn() -> None:
    made = stored("AWS::Batch::JobDefinition", Type="container")
    assert made.physical_id == made.attributes["JobDefinitionArn"]
    assert made.physical_id.startswith("arn:aws:batch:us-west-2:123456789012:job-definition/")


@given(st.sampled_from(TYPES))
def test_each_attribute_and_identifier_keeps_to_its_schema(resource_type: str) -> None:
    schema = schemas.find(resource_type, REGION)
    assert schema is not None
    made = stored(resource_type)
    wrong = {
        path: made.attributes[path]
        for path in schema.attributes
        if not takes(schema.definition(path), made.attributes[path])
    }
    assert wrong == {}
