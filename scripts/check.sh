#!/usr/bin/env bash
# make lint, make test: every check runs even after one has failed, and the last line names those that did.

cd -P "$(dirname "$0")/.."
# shellcheck source=scripts/steps.sh
source scripts/steps.sh

name="make ${1:?name what to check: lint or test}"
failed=()

check() {
  step "$@" || failed+=("$1")
}

# Files with a bash first line, in any folder and under any name. Templates are checked as rendered, by pytest, and a
# Python file may hold a script as text.
check_shell_files() {
  git ls-files --cached --others --exclude-standard -z -- ':!*.j2' ':!*.py' |
    xargs -0 grep -lsE '^#(!/usr/bin/env bash|!/bin/bash| shellcheck shell=bash)' |
    xargs shellcheck --external-sources
}

check "ruff check" ruff check
check "ruff format" ruff format --check
check "pyright (strict)" pyright --warnings
check "shellcheck" check_shell_files

if [[ $1 == test ]]; then
  echo "  pytest ..."
  pytest --quiet -rs --numprocesses 2 --dist loadfile --cov || failed+=(pytest)
fi

if ((${#failed[@]})); then
  printf -v list '%s, ' "${failed[@]}"
  fail "$name: failed: ${list%, }"
fi
finish "$name: every check passed"
