# shellcheck shell=bash
# Installs Debian packages for the scripts beside this file, which must have sourced steps.sh and set `name`.

is_installed() {
  [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

has_package_lists() {
  compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null
}

apt_install() {
  DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends -o DPkg::Lock::Timeout=300 "$@"
}

# install_packages FILE: installs the Debian packages that FILE names, one in each line.
# shellcheck disable=SC2154 # `name`
install_packages() {
  local package missing=()
  while read -r package; do
    is_installed "$package" || missing+=("$package")
  done <"$1"
  if ! has_package_lists; then
    step "package lists of this machine's apt" apt-get update --quiet ||
      fail "$name: apt-get update failed; $(registry_advice apt "the package sources")"
  fi
  ((${#missing[@]})) || return 0
  step "packages: ${missing[*]}" apt_install "${missing[@]}" ||
    { step "newer package lists" apt-get update --quiet && step "packages again" apt_install "${missing[@]}"; } ||
    fail "$name: apt could not install what $1 names; $(registry_advice apt "the package sources")"
}
