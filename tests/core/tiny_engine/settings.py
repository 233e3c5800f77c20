"""The settings of the tiny engine."""

from trainium_core.setting_schema.forms import WholeNumber
from trainium_core.setting_schema.setting import section, setting


@section
class TinySettings:
    """The settings of the tiny engine.

    Attributes:
        size: Size in GiB.
    """

    size: int = setting("tiny_size", WholeNumber(1), default=2, meaning="GiB that the tiny engine has")
