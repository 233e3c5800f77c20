"""What the exit codes of `trn` mean, for scripts and people alike."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of every `trn` command; `trn local -- COMMAND` passes on the command's own instead."""

    OK = 0
    NOT_READY = 1
    BAD_INPUT = 2
    COULD_NOT_TELL = 3
    NODES_WOULD_END = 4
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        return _MEANING[self]


_MEANING = {
    ExitCode.OK: "done, or ready",
    ExitCode.NOT_READY: "not ready: something was found that stands in the way",
    ExitCode.BAD_INPUT: "bad usage, or a plan that cannot be deployed",
    ExitCode.COULD_NOT_TELL: "could not tell: no response, or nothing to respond",
    ExitCode.NODES_WOULD_END: "nothing was deployed: running nodes would end",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C; what goes on is said",
}


def exit_code_table() -> str:
    """One line for each code, for the help text."""
    return "\n".join(f"  {code.value}  {code.meaning}" for code in ExitCode)
