"""Names of files that are valid on Linux and as keys of S3, and that careless code changes or merges."""

NASTY_NAMES = (
    *("run#1", "run#2", "what is 1?", "what is 2?", "run", "what is 1"),
    *("tab\there", "tabhere", "two\nlines", "twolines", "return\r", "bell\x07", "nul%00", "a%20b", "a b", "a+b"),
    *("lr=1#a/x?y=1&z", "lr=1#b/x", "é", "e\u0301", "😀", "<&>'\"", "-rf", "~", "*", "back\\slash"),
    *(" spaces ", ".hidden", "a:b", "$HOME", "`id`"),
)
