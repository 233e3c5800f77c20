"""The settings that a running node cannot adopt."""

import hashlib
from collections.abc import Mapping

from trainium_core.catalog.neuron_software import default_image
from trainium_core.plan.plan import Plan
from trainium_core.plan.settings_by_key import SETTINGS, setting_value
from trainium_core.setting_schema.forms import as_written

_LONGEST = 64


def replacing_settings(plan: Plan) -> Mapping[str, str]:
    """The settings whose change replaces the nodes, as text by key. Long texts become SHA-256 digests.

    Default values are omitted, so that a package version with another default does not replace nodes.
    """
    return replacing_values(
        {key: setting_value(plan, key) for key, setting in SETTINGS.items() if setting.replaces_nodes}
    )


def replacing_values(values: Mapping[str, object]) -> Mapping[str, str]:
    """Values by the keys of their settings, in the form of replacing_settings()."""
    return {key: _text(value) for key, value in values.items() if value not in (None, SETTINGS[key].default)}


def image_setting(plan: Plan) -> str:
    """The plan's image, an ID or a parameter; empty for the default."""
    return "" if plan.image == default_image(plan.type) else plan.image


def _text(value: object) -> str:
    text = str(as_written(value))
    return text if len(text) <= _LONGEST else hashlib.sha256(text.encode()).hexdigest()
