"""The script that every node of a fleet runs once its devices are verified."""

from dataclasses import dataclass
from pathlib import Path

from aws_cdk import Token


@dataclass(frozen=True)
class SetupScript:
    """A bash script that every node runs as root after its devices are verified; a failure fails the node.

    text: the script. Raises ValueError for a CDK token in it, which only CloudFormation could resolve and the script,
    a file in S3, would hold unresolved: give such a value to the fleet's `environment`, and read the variable.

    Example:

        setup = SetupScript.from_text("apt-get install --yes htop")
    """

    text: str

    def __post_init__(self) -> None:
        if Token.is_unresolved(self.text):
            raise ValueError(
                "SetupScript: the text holds a CDK token; allowed: text that is known at synthesis; fix: give the "
                "value to the fleet's environment, such as environment={'DATA': bucket.s3_url_for_object()}, and read "
                "$DATA in the script"
            )

    @staticmethod
    def from_file(path: str | Path) -> "SetupScript":
        """The script of a file. path: relative to the working directory. Raises ValueError for one that is no text."""
        try:
            return SetupScript(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"SetupScript.from_file: {Path(path).resolve()} cannot be read as text: {error}") from None

    @staticmethod
    def from_text(text: str) -> "SetupScript":
        """The script as text. text: with line feeds alone. Raises ValueError as the class does."""
        return SetupScript(text)
