# shellcheck shell=bash
# Steps for the scripts beside this file: one line each, shown before it starts, its time added when it ends.

set -euo pipefail

now_in_tenths() {
  date +%s%N | sed 's/........$//'
}

command_started=$(now_in_tenths)

# seconds_since TENTHS: tenths below ten seconds, whole seconds above.
seconds_since() {
  local tenths=$(($(now_in_tenths) - $1))
  if ((tenths < 100)); then
    echo "$((tenths / 10)).$((tenths % 10)) s"
  else
    echo "$((tenths / 10)) s"
  fi
}

# finish SENTENCE: the last line of a command that did its work.
finish() {
  echo "$1 in $(seconds_since "$command_started")"
}

# fail SENTENCE: the last line of a command that failed.
fail() {
  echo "$1 (after $(seconds_since "$command_started"))" >&2
  exit 1
}

# step TITLE COMMAND...: the output of the command is kept in step_output, and shown only if it fails.
step_output=
step() {
  local title=$1 started
  started=$(now_in_tenths)
  shift
  printf '  %s ... ' "$title"
  if step_output=$("$@" 2>&1); then
    seconds_since "$started"
  else
    echo "failed after $(seconds_since "$started")"
    echo "$step_output"
    return 1
  fi
}

# hash_of FILE...: a hash of the files' contents.
hash_of() {
  cat "$@" | sha256sum | cut -d' ' -f1
}

# is_current STAMP HASH: whether the file STAMP contains HASH, so that the work is already done for these inputs.
is_current() {
  [[ -f $1 && $(<"$1") == "$2" ]]
}

# registry_advice REGISTRY SETTING: what to do if the last step failed because of the network.
registry_advice() {
  if grep -qiE 'connection|resolve|resolution|timed? ?out|ENOTFOUND|EAI_AGAIN|ECONN|proxy|certificate' <<<"$step_output"; then
    echo "the package registry of $1 cannot be reached: check the network, the proxy and $2"
  else
    echo "see the output of $1 above"
  fi
}
