"""Secrets in texts: known values, and what looks like one. Rather too much is masked than too little."""

import json
import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote

MASK = "<masked>"
SHORTEST_SECRET = 6
"""Characters. Shorter values, such as `true`, are all over a text."""

_NAMED_SECRET = (
    r"secret|token|passw|passphrase|credential|authorization|signature|cookie|webhook|"
    r"(?:access|api|private|signing|encryption|account|auth|licen[sc]e)[_-]?key"
)
_SECRET_NAME = re.compile(rf"{_NAMED_SECRET}|(?:^|_)(?:KEY|PAT|DSN|PWD|AUTH)$", re.IGNORECASE)
_NOT_SECRET = ("PWD", "OLDPWD", "SSH_AUTH_SOCK")
"""Variables of every shell whose values are folders."""

_BEFORE_VALUE = rf"([\w.-]*(?:{_NAMED_SECRET})[\w.-]*\\?[\"']?\s*[:=]\s*)"
_NO_TEXT = r"(?:null|true|false)\b|[\[{][\s\]}\"]"
"""What JSON has in the place of a text: masked, it would be JSON no more."""
_BASE64 = "[A-Za-z0-9/+]"
_PATTERNS: tuple[tuple[str, str], ...] = (
    (r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", MASK),
    # AWS's identifiers of keys, users and roles (IAM user guide, reference_identifiers).
    (r"\b(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA|AGPA|AIPA|ANPA|ANVA|APKA|ASCA)[A-Z0-9]{12,124}\b", MASK),
    (r"(?<=://)[^/\s:@]*:[^/\s@]+(?=@)", MASK),
    (r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{6,}", rf"\1 {MASK}"),
    # A value after a name: in JSON, in a shell, in a header, in a URL, as an option of a command.
    (rf"(?i){_BEFORE_VALUE}([\"'])(?:\\.|(?!\2)[^\\\n])*\2", rf"\1\2{MASK}\2"),
    (rf"(?i){_BEFORE_VALUE}(\\[\"'])(?:(?!\2)[^\n])*\2", rf"\1\2{MASK}\2"),
    (rf"(?i){_BEFORE_VALUE}(?!{_NO_TEXT})[^\s\"',;&\\]+", rf"\1{MASK}"),
    (rf"(?i)(--?[\w-]*(?:{_NAMED_SECRET})[\w-]*\s+)[^\s-]\S*", rf"\1{MASK}"),
    # Tokens of GitHub, GitLab, Hugging Face, OpenAI and Anthropic, Slack, Weights & Biases; JSON Web Tokens.
    (r"\b(?:gh[pousr]_|github_pat_|glpat-|hf_|sk-|xox[abprs]-|wandb_)[\w-]{10,}", MASK),
    (r"\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?", MASK),
    (r"[\w.+-]+@[\w-]+\.[\w.-]*\w", "<address>"),
    # Of 40 characters of base64, as AWS's secret keys, or of 100 and more, as its session tokens.
    (rf"(?<![\w/+=-])(?={_BASE64}*[A-Z])(?={_BASE64}*[a-z])(?={_BASE64}*\d){_BASE64}{{40}}(?![\w/+=-])", MASK),
    (r"[A-Za-z0-9/+=_%-]{100,}", MASK),
)
_COMPILED = [(re.compile(pattern, re.DOTALL), replacement) for pattern, replacement in _PATTERNS]
# Not the end of a UUID.
_ACCOUNT = re.compile(r"(?<![\dA-Za-z.])(?<!-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-)\d{12}(?![\dA-Za-z])")
_ASSIGNMENT = re.compile(r"^\s*(?:export\s+)?(\w+)=(\"[^\"\n]*\"|'[^'\n]*'|\S+)", re.MULTILINE)


class Masking:
    """Masks secrets, and account ids as `<account 1>`, `<account 2>`: the same id always by the same number.

    known: values that are secrets, wherever they stand.
    """

    def __init__(self, known: Iterable[str] = ()) -> None:
        long = {value for value in known if len(value) >= SHORTEST_SECRET}
        written = {form for value in long for form in (value, quote(value, safe=""), json.dumps(value)[1:-1])}
        self._known = sorted(written, key=lambda value: (-len(value), value))
        self._accounts: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        for value in self._known:
            text = text.replace(value, MASK)
        for pattern, replacement in _COMPILED:
            text = pattern.sub(replacement, text)
        return _ACCOUNT.sub(lambda found: self._account(found[0]), text)

    def _account(self, number: str) -> str:
        return self._accounts.setdefault(number, f"<account {len(self._accounts) + 1}>")


def secrets_of_environment(environment: Mapping[str, str]) -> set[str]:
    """The values of variables whose names are those of secrets."""
    return {value for name, value in environment.items() if _SECRET_NAME.search(name) and name not in _NOT_SECRET}


def secrets_of_script(script: str) -> set[str]:
    """What a shell script assigns to variables whose names are those of secrets."""
    assigned = {name: value.strip("\"'") for name, value in _ASSIGNMENT.findall(script)}
    return secrets_of_environment(assigned)
