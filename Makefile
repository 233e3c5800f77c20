# jsii and the CDK CLI look for `node` on PATH, and the supported one may be in .venv/bin.
export PATH := $(CURDIR)/.venv/bin:$(PATH)

.DEFAULT_GOAL := help
.PHONY: help setup reference release demo test coverage lint format bench checkov-env bench-env docs docs-env torch-env lowest-env security lab lab-bench pins

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

setup: ## Prepare .venv, a supported Node and the pinned CDK CLI
	@tools/setup.sh

demo: setup ## Deploy TrnClusterStack to an embedded AWS on loopback, look at it, destroy it
	@.venv/bin/python -m tools.demo

test: setup ## Run every check, and every test that needs no root
	@tools/check.sh test

coverage: setup ## The same as test, with the lines listed that no test of the same process runs
	@tools/check.sh coverage

security: setup checkov-env lowest-env ## checkov, the lowest allowed versions, attacks on the embedded AWS; needs root, on Debian or Ubuntu
	@tools/security.sh

lab: setup torch-env ## Train with PyTorch, boot nodes for real and see what they report; needs root, on Debian or Ubuntu
	@tools/lab.sh lab

lab-bench: setup torch-env ## Measure how long a node takes to prove itself, and an empty job; needs root as well
	@tools/lab.sh lab-bench

lint: setup ## Run the checks without the tests: ruff, pyright, shellcheck
	@tools/check.sh lint

format: setup ## Let ruff fix and format the Python files
	@.venv/bin/ruff check --fix --quiet && .venv/bin/ruff format

bench: setup bench-env ## Measure synth, start-up, template size and deployment
	@.venv/bin/python -m tools.bench

docs: docs-env ## Build the site of docs/ into build/site; a warning, such as a link that leads nowhere, is an error
	@tools/docs.sh

reference: setup ## Renew the parts of docs/ that follow from the code: settings, options, checks, errors, parameters, types
	@.venv/bin/python -m tools.reference

release: setup ## Build wheel and sdist into dist/, and try the wheel in a bare environment without Node
	@tools/release.sh

docs-env: ## Prepare .venv-docs, the environment of the site generator
	@tools/tool_env.sh docs

checkov-env: ## Prepare .venv-checkov, the environment of checkov alone
	@tools/tool_env.sh checkov

bench-env: ## Prepare .venv-bench, the environment of ParallelCluster, which bench compares with
	@tools/tool_env.sh bench

torch-env: ## Prepare .venv-torch, in which tests run the SageMaker container entry for real, on CPUs
	@tools/tool_env.sh torch

lowest-env: ## Prepare .venv-lowest, the lowest versions of dependencies that pyproject.toml allows
	@tools/tool_env.sh lowest

pins: ## Renew the transitive pins after a direct one has changed
	@.venv/bin/python tools/pins.py
