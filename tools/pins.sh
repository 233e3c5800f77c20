#!/usr/bin/env bash
# make pins: resolves the ranges of requirements/*.in, pyproject.toml and package.json into exact versions with hashes in
# requirements/*.txt and package-lock.json, and without hashes in requirements.txt. A version stays while its range allows
# it. `tools/pins.sh --upgrade` chooses the versions of all Python packages again.

cd -P "$(dirname "$0")/.."
# shellcheck source=tools/steps.sh
source tools/steps.sh

name="make pins"
command -v uv >/dev/null || fail "$name: needs uv: pip install uv"
options=(--quiet --annotation-style line --custom-compile-command "$name" "$@")

# pin FILE SOURCE OPTION...
pin() {
  step "$1" uv pip compile "$2" --output-file "$1" "${options[@]}" "${@:3}" ||
    fail "$name: $2 could not be resolved, see above"
}

hashed=(--universal --generate-hashes --no-strip-extras)
pin requirements/dev.txt requirements/dev.in "${hashed[@]}" --no-emit-package trainium-cdk
# The same versions with this package, for `pip install -r requirements.txt`: pip accepts no folder beside hashes.
pin requirements.txt requirements/dev.in --universal --constraint requirements/dev.txt
pin requirements/lowest.txt pyproject.toml "${hashed[@]}" --extra cli --resolution lowest-direct
pin requirements/node.txt requirements/node.in "${hashed[@]}"
pin requirements/checkov.txt requirements/checkov.in "${hashed[@]}"
pin requirements/mutants.txt requirements/mutants.in "${hashed[@]}" --python-version 3.11
pin requirements/docs.txt requirements/docs.in "${hashed[@]}" --python-version 3.11
# The pins are those for Windows, where PyTorch is built for CPUs only: those for Linux would include CUDA. Without
# hashes, because on Linux a build for CPUs is installed, which is not in the same index.
pin requirements/torch.txt requirements/torch.in --python-platform windows --python-version 3.11
step package-lock.json npm install --package-lock-only --loglevel=error ||
  fail "$name: package-lock.json could not be updated, see above"
finish "$name: the pins are updated"
