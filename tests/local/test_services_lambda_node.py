"""Lambda functions for Node.js, and layers, for Python too."""

import io
import zipfile

import pytest

from tests.local.code_entry import readable
from tests.local.conftest import EmbeddedAws
from tests.local.test_services_lambda import Create, creator, invoke


@pytest.fixture
def create(embedded_aws: EmbeddedAws) -> Create:
    return creator(embedded_aws)


def node(code: str, name: str = "index.js") -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as bundle:
        bundle.writestr(readable(name), code)
    return archive.getvalue()


NODE_HANDLERS = {
    "async": "exports.handler = async (event, context) => ({ n: event.n + 1, name: context.functionName })",
    "callback": "exports.handler = ({ n }, { functionName }, done) => done(null, { n: n + 1, name: functionName })",
}


@pytest.mark.parametrize("code", NODE_HANDLERS.values(), ids=NODE_HANDLERS)
def test_a_function_for_node_answers(embedded_aws: EmbeddedAws, create: Create, code: str) -> None:
    name = create("", Runtime="nodejs22.x", code=node(code))
    assert invoke(embedded_aws, name, {"n": 1}) == ({"n": 2, "name": name}, None)


def test_a_module_of_ecmascript_is_a_function_too(embedded_aws: EmbeddedAws, create: Create) -> None:
    name = create("", Runtime="nodejs22.x", code=node("export const handler = async () => 7", "index.mjs"))
    assert invoke(embedded_aws, name) == (7, None)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("exports.handler = async () => { throw new TypeError('no such node') }", "no such node"),
        ("require('@aws-sdk/client-s3')", "the embedded AWS has no AWS SDK for JavaScript"),
        ("exports.other = 1", "index.handler is undefined or not exported"),
    ],
)
def test_an_error_in_node_is_a_function_error(
    embedded_aws: EmbeddedAws, create: Create, code: str, message: str
) -> None:
    payload, error = invoke(embedded_aws, create("", Runtime="nodejs22.x", code=node(code)))
    assert message in payload["errorMessage"]
    assert error == "Unhandled"


def test_what_layers_hold_can_be_imported(embedded_aws: EmbeddedAws, create: Create) -> None:
    client = embedded_aws.client("lambda")
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as bundle:
        bundle.writestr(readable("python/brought.py"), "VALUE = 5")
        bundle.writestr(readable("nodejs/node_modules/brought/index.js"), "exports.value = 6")
    layer = client.publish_layer_version(LayerName="l", Content={"ZipFile": archive.getvalue()})["LayerVersionArn"]
    python = create("import brought\ndef handler(event, context):\n    return brought.VALUE\n", Layers=[layer])
    code = node("exports.handler = async () => require('brought').value")
    assert invoke(embedded_aws, python) == (5, None)
    assert invoke(embedded_aws, create("", Runtime="nodejs22.x", code=code, Layers=[layer])) == (6, None)
