"""What bash would say of a script before it runs it."""

from functools import cache

_SECONDS = 10


@cache
def bash_syntax_error(script: str) -> str | None:
    """The first complaint of `bash -n`; None when it has none, and where there is no bash to be asked."""
    import subprocess  # late: few plans have a script
    from shutil import which

    bash = which("bash")
    if bash is None:
        return None
    try:
        checked = subprocess.run(
            [bash, "-n"], input=script.encode(), capture_output=True, env={}, check=False, timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = checked.stderr.decode(errors="replace").strip().splitlines()
    if checked.returncode == 0:
        return None
    return lines[0].removeprefix(f"{bash}: ") if lines else f"exit code {checked.returncode}"
