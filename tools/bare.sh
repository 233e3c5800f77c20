#!/usr/bin/env bash
# make bare: runs README's commands in a clone of the last commit, as a user without root rights, on a bare Debian or
# Ubuntu with only the packages that README requires. `tools/bare.sh COMMAND` runs another command there.

cd -P "$(dirname "$0")/.."
# shellcheck source=tools/steps.sh
source tools/steps.sh
# shellcheck source=tools/debian.sh
source tools/debian.sh
# shellcheck source=tools/python_env.sh
source tools/python_env.sh

name="make bare"
commands=${*:-make demo && make test}
user=tester
home=$PWD/.lab/home

# This machine's settings of pip and npm, and the certificates that it trusts, apply in the bare root too.
NPM_CONFIG_GLOBALCONFIG=$(npm config get globalconfig 2>/dev/null) && export NPM_CONFIG_GLOBALCONFIG
machine_settings=(/etc/pip.conf /etc/xdg/pip/pip.conf "$NPM_CONFIG_GLOBALCONFIG")
user_settings=(.pip/pip.conf .config/pip/pip.conf .npmrc)
certificates=/etc/ssl/certs/ca-certificates.crt

registry_variables() {
  compgen -e |
    grep -xE '(PIP|NPM_CONFIG|npm_config)_.*|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|NODE_EXTRA_CA_CERTS|[A-Za-z]+_(PROXY|proxy)'
}

# named_paths: the local paths in these settings, such as certificates and folders of packages.
named_paths() {
  local variable
  {
    for variable in $(registry_variables); do echo "${!variable}"; done
    cat "${machine_settings[@]}" "${user_settings[@]/#/$HOME/}" 2>/dev/null || true
  } | grep -oE '/[^][:space:]"'\'',;:[]+' | sed -E 's,^/+,/,' | sort -u
}

# missing_part PATH: the first part of the path that the bare root lacks, since a package index may link to its parent.
missing_part() {
  local path=$1
  while [[ ! -e $root$(dirname "$path") ]]; do path=$(dirname "$path"); done
  echo "$path"
}

# shared_paths: files and folders of this machine that the bare root gets.
shared_paths() {
  local path
  while read -r path; do
    if [[ -f $path ]]; then
      echo "$path"
    elif [[ -d $path && ! -e $root$path ]]; then
      missing_part "$path"
    fi
  done < <(
    printf '%s\n' "$certificates" "${machine_settings[@]}"
    named_paths
  ) | sort -u
}

# make_home: the user's home, with a clone of the last commit.
make_home() {
  local file
  rm -rf "$home" && git clone --quiet --depth 1 "file://$PWD" "$home/trainium-cdk" || return
  for file in "${user_settings[@]}"; do
    [[ ! -f ~/$file ]] || install -D --mode 644 ~/"$file" "$home/$file" || return
  done
  chown -R "$(chroot "$root" id -u "$user"):$(chroot "$root" id -g "$user")" "$home"
}

run_commands() {
  local shared variables
  mapfile -t shared < <(shared_paths)
  mapfile -t variables < <(registry_variables)
  systemd-nspawn --quiet --register=no --keep-unit --as-pid2 --pipe --ephemeral --directory="$root" \
    --resolv-conf=replace-host --bind="$home:/home/$user" "${shared[@]/#/--bind-ro=}" \
    "${variables[@]/#/--setenv=}" ${CI:+--setenv=CI} --user="$user" --chdir="/home/$user/trainium-cdk" \
    bash -c "$commands" </dev/null
}

((EUID == 0)) || fail "$name: needs root, to build and enter the file system of the bare machine"
find_python "$name"
install_packages tools/lab/packages/machine.txt
# shellcheck disable=SC2154 # `python`
step "the bare root file system" "$python" -m tools.lab.base_rootfs bare ||
  fail "$name: the root file system could not be built; $(registry_advice apt "the package sources")"
root=$step_output
step "a clone of $(git rev-parse --short HEAD)" make_home || fail "$name: the commit could not be cloned"
echo "$name: as $user, in a copy of $root: $commands"
export SYSTEMD_NSPAWN_TMPFS_TMP=0 # /tmp on disk
run_commands || fail "$name: failed, see above; the clone is in $home"
rm -rf "$home"
finish "$name: passed: $commands"
