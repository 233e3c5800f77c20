"""The settings of the tiny engine."""

from trainium_core.settings.forms import WholeNumber
from trainium_core.settings.setting import section, setting


@section
class TinySettings:
    """`size` is in GiB."""

    size: int = setting("tiny_size", WholeNumber(1), default=2, meaning="GiB that the tiny engine has")
