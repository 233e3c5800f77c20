"""Lambda functions whose source stands in the template."""

import io
import zipfile
from importlib.resources import files

from trainium_local.resources.api_resource import ApiResource
from trainium_local.resources.registry import Properties


class _Function(ApiResource):
    def adapt(self, properties: Properties) -> Properties:
        """Source text becomes the archive that the API wants, with the module for answers of custom resources in it."""
        source = properties["Code"].get("ZipFile")
        if source is None:
            return properties
        python = str(properties.get("Runtime", "")).startswith("python")
        name, module = ("index.py", "cfnresponse.py") if python else ("index.js", "cfn-response.js")
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as bundle:
            bundle.writestr(zipfile.ZipInfo(name), source)
            bundle.writestr(
                zipfile.ZipInfo(module if python else f"node_modules/{module}"),
                (files("trainium_local.resources") / "cfn_response" / module).read_text(),
            )
        return {**properties, "Code": {"ZipFile": archive.getvalue()}}


KINDS = {"AWS::Lambda::Function": _Function}
