#!/usr/bin/env bash
# make lab: boot nodes for real and see what they report. make lab-bench: how long a node takes to prove itself.

cd -P "$(dirname "$0")/.."
# shellcheck source=scripts/steps.sh
source scripts/steps.sh
export PATH=$PWD/.venv/bin:$PATH

what=${1:?name what to run: lab or lab-bench}
name="make $what"
cannot_run=2

refuse() {
  echo "$name: $1" >&2
  exit "$cannot_run"
}

is_installed() {
  [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

has_package_lists() {
  compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null
}

apt_install() {
  DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends "$@"
}

install_packages() {
  local package missing=()
  while read -r package; do
    is_installed "$package" || missing+=("$package")
  done <lab/packages/machine.txt
  if ! has_package_lists; then
    step "package lists of this machine's apt" apt-get update --quiet ||
      fail "$name: apt-get update failed; $(registry_advice apt "the package sources")"
  fi
  ((${#missing[@]})) || return 0
  step "packages: ${missing[*]}" apt_install "${missing[@]}" ||
    { step "newer package lists" apt-get update --quiet && step "packages again" apt_install "${missing[@]}"; } ||
    fail "$name: apt could not install what lab/packages/machine.txt names; $(registry_advice apt "the package sources")"
}

hindrance=$(python -m lab.machine 2>&1) || refuse "$hindrance"
install_packages
step "the nodes' root file system" python -m lab.golden_root ||
  fail "$name: the root file system could not be built; $(registry_advice apt "the package sources")"

case $what in
  lab) python -m lab || fail "$name: a test failed, see above; each node's console is in .lab/run/nodes" ;;
  lab-bench) python -m lab lab.bench || fail "$name: the measurement failed, see above" ;;
esac
finish "$name: $(<.lab/run/shown)"
