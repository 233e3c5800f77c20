"""A shell on a node, by the AWS CLI with its Session Manager plug-in: no SSH, no open port."""

DOCUMENT = "AWS-StartInteractiveCommand"

LOGIN = "sudo -iu $(id -nu 1000)"
"""User 1000 is the image's own: Session Manager's shell reads no profile, and its limits are too low for EFA. By name:
the agent runs this with `sh -c`, where sudo's `#1000` begins a comment."""

PROGRAMS = {
    "aws": "the AWS CLI",
    "session-manager-plugin": "the Session Manager plug-in of the AWS CLI",
}
"""What has to be installed on the machine of whoever wants a shell."""

INSTALL = (
    "https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-working-with-install-plugin.html"
)


def session_command(region: str, instance_id: str) -> list[str]:
    """What starts the shell."""
    return [
        *("aws", "ssm", "start-session", "--region", region, "--document-name", DOCUMENT),
        *("--parameters", f"command={LOGIN}", "--target", instance_id),
    ]
