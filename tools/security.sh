#!/usr/bin/env bash
# make security: checkov reads the templates, apps are synthesised with the lowest allowed versions, a browser and
# another user of this machine attack the embedded AWS, and tests check the limits of the user that runs jobs.

cd -P "$(dirname "$0")/.."
# shellcheck source=tools/steps.sh
source tools/steps.sh
# shellcheck source=tools/debian.sh
source tools/debian.sh
export PATH=$PWD/.venv/bin:$PATH

name="make security"

((EUID == 0)) || fail "$name: needs root, to act as another user and to install the packages in tools/security/packages.txt"
install_packages tools/security/packages.txt
apart=(tests/stacks/test_checkov.py tests/wheel/test_dependency_ranges.py
  tests/userdata/test_pcs_image.py tests/userdata/test_neuron_key.py tests/userdata/test_job_user.py)
pytest --quiet -rs -p no:cacheprovider --numprocesses 2 --dist loadfile "${apart[@]}" tools/security ||
  fail "$name: a test failed, see above"
finish "$name: the checkov tests passed; the lowest allowed versions work; the attacks failed, and those over the network succeeded against plain moto"
