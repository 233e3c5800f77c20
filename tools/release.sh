#!/usr/bin/env bash
# make release: builds wheel and sdist from a clean tree into dist/, and tries the wheel in a new environment.

cd -P "$(dirname "$0")/.."
# shellcheck source=tools/steps.sh
source tools/steps.sh

name="make release"

[[ -z $(git status --porcelain) ]] || fail "$name: the tree has changes that are not committed; commit them first"
version=$(sed -nE 's/^version = "(.*)"$/\1/p' pyproject.toml)
noted=$(sed -nE 's/^## ([0-9][^,]*).*/\1/p' CHANGELOG.md | head -1)
[[ $version == "$noted" ]] || fail "$name: pyproject.toml has version $version, CHANGELOG.md begins with $noted"

bare=$(mktemp -d)
trap 'rm -rf "$bare"' EXIT

# Only the environment is on PATH: neither Node nor the CDK CLI.
alone() {
  (cd "$bare" && env -i HOME="$bare" LANG=C.UTF-8 PATH="$bare/env/bin" "$@")
}

try_wheel() {
  alone trn --version | grep -F "$version" &&
    alone trn init pilot --type trn1.32xlarge --region us-west-2 --nodes 2 --yes &&
    alone trn plan --file pilot/cdk.json &&
    alone trn estimate --offline --hours 8 --file pilot/cdk.json &&
    alone trn explain VcpuLimitExceeded
}

rm -rf dist
step "wheel and sdist into dist/" .venv/bin/python -m build --outdir dist ||
  fail "$name: wheel and sdist could not be built, see above"
step "a bare environment" .venv/bin/python -m venv "$bare/env" ||
  fail "$name: the environment could not be created, see above"
# Without hashes, which the wheel does not have, and without extras, which pip refuses in constraints.
sed -nE 's/^([^ []+)(\[.*\])?(==.*) \\$/\1\3/p' requirements/dev.txt >"$bare/constraints.txt"
step "the wheel with its extra cli" "$bare/env/bin/pip" install --quiet --no-compile --disable-pip-version-check \
  --constraint "$bare/constraints.txt" "dist/trainium_cdk-$version-py3-none-any.whl[cli]" ||
  fail "$name: the wheel could not be installed; $(registry_advice pip PIP_INDEX_URL)"
step "plan, estimate and explain without Node" try_wheel ||
  fail "$name: the wheel does not work without this repository and Node, see above"
finish "$name: $(cd dist && echo *) are ready; docs/project/release.md has what is left to do"
