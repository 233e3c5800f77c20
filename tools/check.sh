#!/usr/bin/env bash
# make lint, make test, make coverage, make integration: every check runs even after one has failed, and the last line
# names those that did.

cd -P "$(dirname "$0")/.."
# shellcheck source=tools/steps.sh
source tools/steps.sh

what=${1:?name what to check: lint, test, coverage or integration}
name="make $what"
failed=()

check() {
  step "$@" || failed+=("$1")
}

# Files with a bash first line, in any folder and under any name. Templates are checked as rendered, by pytest, and
# Python files and pages may hold a script as text.
check_shell_files() {
  git ls-files --cached --others --exclude-standard -z -- ':!*.j2' ':!*.py' ':!*.md' |
    xargs -0 grep -lsE '^#(!/usr/bin/env bash|!/bin/bash| shellcheck shell=bash)' |
    xargs shellcheck --external-sources
}

# run_pytest OPTION...: four processes for two cores, since deployments and jobs wait half of the time.
run_pytest() {
  echo "  pytest ..."
  # Less time in each synthesis, as the file says, and no threads for compilation, which two cores do not need.
  export NODE_OPTIONS="--require \"$PWD/tools/wasm_once.cjs\" --v8-pool-size=0"
  unset PYTHONDONTWRITEBYTECODE # the tests start hundreds of processes: none need compile our modules again
  # Files start in the order of their folders: xdist would start files with few tests last, and these are the longest.
  pytest --quiet -rs --numprocesses 4 --dist loadfile --no-loadscope-reorder "$@" || failed+=(pytest)
}

integration=(tests/deploy tests/local tests/cli/local tests/tools/demo)
# These need a separate environment: make security and make lab run them.
apart=(tests/stacks/test_checkov.py tests/wheel/test_dependency_ranges.py
  tests/core/test_sagemaker_container.py tests/core/test_launch.py tests/examples)

if [[ $what == integration ]]; then
  run_pytest "${integration[@]}"
else
  types_shown=$(mktemp)
  trap 'rm -f "$types_shown"' EXIT
  # Runs beside the tests, which wait at times: it keeps one core busy for 90 seconds. Ctrl-C ends it too: the
  # subshell in the background ignores that signal, pyright does not.
  (
    step "pyright (strict), beside the others" nice pyright --warnings
  ) >"$types_shown" 2>&1 &
  types=$!

  check "ruff check" ruff check
  check "ruff format" ruff format --check
  check "shellcheck" check_shell_files
  check "prose" python -m tools.prose
  case $what in
    test) run_pytest "${integration[@]/#/--ignore=}" "${apart[@]/#/--ignore=}" ;;
    coverage) run_pytest "${apart[@]/#/--ignore=}" --cov ;;
  esac

  wait "$types" || failed+=("pyright (strict)")
  cat "$types_shown"
fi

if ((${#failed[@]})); then
  printf -v list '%s, ' "${failed[@]}"
  fail "$name: failed: ${list%, }"
fi
finish "$name: every check passed"
