#!/usr/bin/env bash
# make checkov-env, docs-env, lowest-env, mutants-env, torch-env: .venv-NAME from requirements/NAME.txt, for tools that
# cannot share .venv.

cd -P "$(dirname "$0")/.."
# shellcheck source=tools/steps.sh
source tools/steps.sh
# shellcheck source=tools/python_env.sh
source tools/python_env.sh

tool=${1:?name the environment: checkov, docs, lowest, mutants or torch}
install_requirements "make $tool-env" ".venv-$tool" "requirements/$tool.txt" "about a minute"
finish "make $tool-env: .venv-$tool ready"
