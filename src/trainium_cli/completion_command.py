"""`trn completion`: what a shell reads so that it completes `trn`."""

import os
import shlex
from pathlib import Path

import click
from click.shell_completion import BashComplete, CompletionItem, FishComplete, ShellComplete, ZshComplete

from trainium_cli.completion_values import COMPLETION

SHELLS = ("bash", "zsh", "fish")

_BASH = """\
%(complete_func)s() {
    local line=${COMP_LINE:0:COMP_POINT} word typed value
    word=${line##*[[:space:]]}
    # Bash breaks words at these too, and replaces what follows the last of them alone.
    typed=
    if [[ $COMP_WORDBREAKS == *:* ]]; then typed=${word%%"${word##*[:=]}"}; fi
    COMPREPLY=()
    while IFS= read -r value; do
        case $value in
            "") continue ;;
            file | dir) compopt -o default; return ;;
            *=) compopt -o nospace ;;
        esac
        COMPREPLY+=("${value#"$typed"}")
    done < <(TRN_LINE=$line %(complete_var)s=bash_complete "$1")
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""

_ZSH = """\
#compdef %(prog_name)s

%(complete_func)s() {
    local -a values described open response
    local type key meaning COMP_WORDS COMP_CWORD
    (( ! $+commands[%(prog_name)s] )) && return 1
    export COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT - 1))
    response=("${(@f)$(%(complete_var)s=zsh_complete %(prog_name)s)}")
    for type key meaning in ${response}; do
        case $type in
            dir) _path_files -/ ;;
            file) _path_files -f ;;
            *)
                if [[ $key == *= ]]; then open+=("$key:$meaning")
                elif [[ $meaning == _ ]]; then values+=("$key")
                else described+=("$key:$meaning"); fi
                ;;
        esac
    done
    # A key that a value follows is followed by no space.
    (( $#open )) && _describe -V unsorted open -U -S ''
    (( $#described )) && _describe -V unsorted described -U
    (( $#values )) && compadd -U -V unsorted -a values
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
"""


class WholeLine(BashComplete):
    """Bash, by the line as it was typed: bash itself breaks `trn:region=us-west-2` into five words."""

    source_template = _BASH

    def source(self) -> str:
        """The script. Click's own asks bash for its version first."""
        return ShellComplete.source(self)

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ["TRN_LINE"]
        try:
            words = shlex.split(line)
        except ValueError:  # an open quotation
            words = line.split()
        incomplete = "" if line[-1:].isspace() else words.pop()
        return words[1:], incomplete

    def format_completion(self, item: CompletionItem) -> str:
        return item.type if item.type != "plain" else str(item.value)


class OpenValues(ZshComplete):
    """Zsh, without a space after a key of a setting, which its value follows."""

    source_template = _ZSH


SHELL_CLASSES: tuple[type[ShellComplete], ...] = (WholeLine, OpenValues, FishComplete)


@click.command()
@click.argument("shell", required=False, type=click.Choice(SHELLS))
def completion(shell: str | None) -> None:
    """Print what makes a shell complete trn.

    Commands, options, settings with their values, regions, types; and the clusters, nodes and jobs of the account where
    it answers within a second. Default: the shell of $SHELL. In bash (4.4 or later), for this shell, or in ~/.bashrc
    for each:

        eval "$(trn completion bash)"

    zsh: the same in ~/.zshrc. fish: trn completion fish > ~/.config/fish/completions/trn.fish
    """
    name = shell or Path(os.environ.get("SHELL", "")).name
    if name not in SHELLS:
        raise click.UsageError(f"name the shell: {', '.join(SHELLS)}")
    click.echo(script(name))


def script(shell: str) -> str:
    """What the shell reads."""
    made = next(one for one in SHELL_CLASSES if one.name == shell)
    return made(click.get_current_context().find_root().command, {}, "trn", COMPLETION).source()
