#!/usr/bin/env bash
# make lint, make test, make integration, make coverage. Every check of make lint runs even after one has failed, and
# the last line names the failed ones.

cd -P "$(dirname "$0")/.."
# shellcheck source=tools/steps.sh
source tools/steps.sh

what=${1:?name what to run: lint, test, integration or coverage}
name="make $what"

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

# Of the public symbols of trainium_cdk and their members, 95% have types that need no inference.
check_public_types() {
  # Its exit code is 1 below 100%.
  { pyright --outputjson --ignoreexternal --verifytypes trainium_cdk || true; } | python -c '
import json, sys
score = json.load(sys.stdin)["typeCompleteness"]["completenessScore"]
sys.exit(None if score >= 0.95 else f"pyright --verifytypes trainium_cdk: {score:.1%} of the types are known; allowed: 95% or more")'
}

# run_pytest OPTION...: four processes for two cores, since deployments and jobs wait half of the time.
run_pytest() {
  # wasm_once.cjs shortens each synthesis, as it explains. Two cores need no threads for compilation.
  export NODE_OPTIONS="--require \"$PWD/tools/wasm_once.cjs\" --v8-pool-size=0"
  unset PYTHONDONTWRITEBYTECODE # the tests start hundreds of processes, which then share the compiled modules
  # Files start in the order of their folders: xdist would start files with few tests last, and these are the longest.
  pytest --quiet -rs --numprocesses 4 --dist loadfile --no-loadscope-reorder "$@" ||
    fail "$name: a test failed, see above"
  finish "$name: every test passed"
}

integration=(tests/deploy tests/local tests/cli/local tests/tools/demo)
# These need a separate environment, other programs or root: make security and make lab run them.
apart=(tests/stacks/test_checkov.py tests/wheel/test_dependency_ranges.py
  tests/userdata/test_pcs_image.py tests/userdata/test_neuron_key.py tests/userdata/test_job_user.py
  tests/core/test_sagemaker_container.py tests/core/test_launch.py tests/examples)

case $what in
  lint)
    failed=()
    check "ruff check" ruff check
    check "ruff format" ruff format --check
    check "shellcheck" check_shell_files
    check "prose" python -m tools.prose
    check "pyright (strict)" pyright --warnings
    check "types of the public API" check_public_types
    if ((${#failed[@]})); then
      printf -v list '%s, ' "${failed[@]}"
      fail "$name: failed: ${list%, }"
    fi
    finish "$name: every check passed"
    ;;
  test) run_pytest "${integration[@]/#/--ignore=}" "${apart[@]/#/--ignore=}" ;;
  integration) run_pytest "${integration[@]}" ;;
  coverage) run_pytest "${apart[@]/#/--ignore=}" --cov ;;
  *) fail "no such target: $what" ;;
esac
