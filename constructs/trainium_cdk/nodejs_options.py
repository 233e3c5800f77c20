"""Options for the Node.js that aws_cdk starts: it synthesises one app, and lives for seconds."""

import json
import os
from collections.abc import MutableMapping
from pathlib import Path

_FLAGS = Path(__file__).with_name("nodejs_flags.cjs")
_WORKERS = "--v8-pool-size=0"
"""As many threads as the processors allow. By default there are four, also where they take turns on two."""


def set_nodejs_options(environment: MutableMapping[str, str] = os.environ) -> None:
    """Shorten the synthesis by NODE_OPTIONS. Call it before aws_cdk is imported, which starts Node.js.

    What NODE_OPTIONS holds already stays and wins. docs/project/benchmarks.md has the figures.
    """
    # Node.js reads a quoted path as JSON does: a backslash before a quote or another backslash.
    ours = f"--require {json.dumps(str(_FLAGS), ensure_ascii=False)} {_WORKERS}"
    environment["NODE_OPTIONS"] = f"{ours} {environment.get('NODE_OPTIONS', '')}".rstrip()
