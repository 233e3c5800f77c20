"""Numbers of things in messages."""


def count(number: int, what: str) -> str:
    """A number of things, such as `1 node` and `2,000 nodes`."""
    return f"{number} {what}" if number == 1 else f"{number:,} {what}s"
