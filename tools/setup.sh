#!/usr/bin/env bash
# make setup: .venv, a supported Node and the tools of package.json. Repeats only what changed.

cd -P "$(dirname "$0")/.."
# shellcheck source=tools/steps.sh
source tools/steps.sh
# shellcheck source=tools/python_env.sh
source tools/python_env.sh
# shellcheck source=tools/node.sh
source tools/node.sh
export PATH=$PWD/.venv/bin:$PATH

name="make setup"

install_node_tools() {
  local stamp=node_modules/.installed inputs
  inputs=$(hash_of package.json package-lock.json .npmrc)
  if is_current "$stamp" "$inputs"; then
    return
  fi
  # The wheel's npm does not see the machine's npm settings, where a company's certificate may be named.
  NODE_USE_SYSTEM_CA=1 step "tools of package-lock.json into node_modules" npm ci --loglevel=error ||
    fail "$name: package-lock.json could not be installed; $(registry_advice npm "npm's registry setting")"
  echo "$inputs" >"$stamp"
}

# With the hatchling of requirements/dev.txt, whose hash is checked, and without compiling modules.
install_package() {
  local stamp=.venv/.installed-package inputs
  inputs=$(hash_of pyproject.toml)
  if is_current "$stamp" "$inputs"; then
    return
  fi
  step "this package into .venv" .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile \
    --no-deps --no-build-isolation --no-index --editable . || fail "$name: this package could not be installed, see above"
  echo "$inputs" >"$stamp"
}

install_requirements "$name" .venv requirements/dev.txt "about a minute"
install_package
prepare_node "$name"
install_node_tools
# These are then on PATH when .venv is activated.
ln -sf ../../node_modules/.bin/cdk ../../node_modules/.bin/pyright .venv/bin/

cdk_version=$(sed -nE 's/^ *"aws-cdk": "(.*)",?$/\1/p' package.json)
finish "$name: .venv and aws-cdk $cdk_version (Node $(node --version)) ready"
