# shellcheck shell=bash
# Python environments, whose requirements files are installed again when they change. Needs steps.sh.

# find_python COMMAND_NAME: sets `python` to $PYTHON, or to the first interpreter on PATH that pyproject.toml allows.
find_python() {
  local allowed minimum candidate found
  allowed=$(sed -nE 's/^requires-python = ">=([0-9.]+)"$/\1/p' pyproject.toml)
  minimum="(${allowed/./, })"
  for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
    python=$candidate
    "$python" -c "import sys; sys.exit(sys.version_info < $minimum)" 2>/dev/null && return
  done
  found=$("${PYTHON:-python3}" --version 2>/dev/null) || found="none"
  fail "$1: Python $allowed or newer is needed, found $found; install one, or name one: PYTHON=/path/to/python3"
}

# create_env COMMAND_NAME DIRECTORY: creates an empty environment, unless a usable one is there.
# An environment that was moved, or has lost its interpreter, is replaced.
create_env() {
  if "$2/bin/python" -c '' 2>/dev/null && grep -q "$PWD/$2/" "$2/bin/pip"; then
    return
  fi
  find_python "$1"
  "$python" -c 'import ensurepip, venv' 2>/dev/null ||
    fail "$1: $("$python" --version) lacks its venv module; on Debian and Ubuntu: apt install python3-venv"
  rm -rf "$2"
  step "$2 with $("$python" --version)" "$python" -m venv "$2" || fail "$1: $2 could not be created"
}

# install_requirements COMMAND_NAME DIRECTORY FILE NOTE: installs FILE into the environment, and again when FILE has
# changed. pip checks the hashes in FILE.
install_requirements() {
  local stamp inputs
  stamp=$2/.installed-${3##*/}
  inputs=$(hash_of "$3")
  create_env "$1" "$2"
  if is_current "$stamp" "$inputs"; then
    return
  fi
  # pip would compile all modules, which takes as long as their installation. Python compiles a module when it is first
  # imported, and only a fifth are.
  step "packages of $3 into $2 ($4)" "$2/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile --requirement "$3" ||
    fail "$1: $3 could not be installed; $(registry_advice pip PIP_INDEX_URL)"
  echo "$inputs" >"$stamp"
}
