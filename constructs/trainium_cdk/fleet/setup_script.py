"""The setup script of a fleet's nodes."""

from dataclasses import dataclass
from pathlib import Path
from typing import cast

from aws_cdk import Token


@dataclass(frozen=True)
class SetupScript:
    """A bash script that every node runs as root after its devices have been verified. If it fails, the node fails.

    CloudFormation does not resolve CDK tokens in the script, which is a file in S3. Pass such a value in the fleet's
    `environment`, and read the variable.

    Attributes:
        text: The script.

    Raises:
        ValueError: The text is empty, or contains a NUL character or a CDK token.

    Example:

        setup = SetupScript.from_text("apt-get install --yes htop")
        longer = SetupScript.from_file("setup.sh")
    """

    text: str

    def __post_init__(self) -> None:
        text = cast(object, self.text)
        if not isinstance(text, str) or not text.strip() or "\0" in text:
            raise ValueError(
                f"SetupScript: text: got {text!r}; allowed: the text of a bash script, without NUL characters; fix: "
                "specify at least one command, or remove `setup`"
            )
        if Token.is_unresolved(self.text):
            raise ValueError(
                "SetupScript: the text contains a CDK token; allowed: text that is known at synthesis; fix: pass the "
                "value in the fleet's environment, such as environment={'DATA': bucket.s3_url_for_object()}, and read "
                "$DATA in the script"
            )

    @staticmethod
    def from_file(path: str | Path) -> "SetupScript":
        """The script in a file.

        Args:
            path: Path of the file. A relative path is relative to the working directory.

        Raises:
            ValueError: The file cannot be read as text, is empty, or contains a NUL character or a CDK token.
        """
        try:
            return SetupScript(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            problem = error.strerror if isinstance(error, OSError) else error
            raise ValueError(
                f"SetupScript.from_file: {Path(path).absolute()} cannot be read as text: {problem}; allowed: a bash "
                "script in UTF-8; fix: pass the path of such a file, absolute or relative to the working directory"
            ) from None

    @staticmethod
    def from_text(text: str) -> "SetupScript":
        """The script as text.

        Args:
            text: The script, with LF line endings.

        Raises:
            ValueError: The text is empty, or contains a NUL character or a CDK token.
        """
        return SetupScript(text)
