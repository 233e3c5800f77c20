#!/usr/bin/env bash
# make lab: runs the tests with real PyTorch, then boots nodes and tests what they report. make lab-bench: measures how
# long a node takes to verify itself, and empty jobs of `trn run`. make pilot: runs examples/pilot on booted nodes.

cd -P "$(dirname "$0")/.."
# shellcheck source=tools/steps.sh
source tools/steps.sh
# shellcheck source=tools/debian.sh
source tools/debian.sh
export PATH=$PWD/.venv/bin:$PATH

what=${1:?name what to run: lab, lab-bench or pilot}
name="make $what"
cannot_run=2
rootfs=(root slurm)
case $what in
  lab) rootfs+=(prometheus) ;;
  pilot) rootfs=(root) ;;
esac

refuse() {
  echo "$name: $1" >&2
  exit "$cannot_run"
}

missing_requirement=$(python -m tools.lab.machine 2>&1) || refuse "$missing_requirement"
install_packages tools/lab/packages/machine.txt
step "the nodes' root file system" python -m tools.lab.base_rootfs "${rootfs[@]}" ||
  fail "$name: the root file system could not be built; $(registry_advice apt "the package sources")"

case $what in
  lab)
    pytest --quiet -p no:cacheprovider --numprocesses 2 --dist loadfile \
      tests/core/test_sagemaker_container.py tests/core/test_launch.py tests/examples ||
      fail "$name: a test with real PyTorch failed, see above"
    python -m tools.lab || fail "$name: a test failed, see above; each node's console is below .lab/run"
    ;;
  lab-bench)
    for bench in tools.lab.bench tools.lab.job_bench tools.lab.slurm.bench; do
      python -m tools.lab "$bench" || fail "$name: the measurement failed, see above"
    done
    ;;
  pilot)
    python -u -m tools.lab tools.pilot || fail "$name: failed, see above; each node's console is below .lab/run"
    ;;
esac
finish "$name: $(cat .lab/run/*/shown | paste -sd ,)"
