# jsii and the CDK CLI look for `node` on PATH, and the supported one may be in .venv/bin.
export PATH := $(CURDIR)/.venv/bin:$(PATH)

.DEFAULT_GOAL := help
.PHONY: help setup demo pilot test bare integration coverage lint format docs reference release bench pins security lab lab-bench mutants checkov-env docs-env lowest-env mutants-env torch-env

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z -]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' Makefile

setup: ## Prepare .venv, a supported Node and the pinned CDK CLI
	@tools/setup.sh

demo: setup ## Deploy TrnClusterStack to an embedded AWS on loopback, look at it, destroy it
	@.venv/bin/python -m tools.demo

pilot: setup torch-env ## Run examples/pilot from the assessment to the report, on booted nodes; needs root, on Debian or Ubuntu
	@tools/lab.sh pilot

test: setup ## Test the code
	@tools/check.sh test

bare: ## Run make demo and make test on a bare system, in a clone of the last commit; needs root, on Debian or Ubuntu
	@tools/bare.sh

integration: setup ## Test the embedded AWS; deploy every stack and the apps of the tests to it, operate and destroy them; run the demo
	@tools/check.sh integration

coverage: setup ## Run the tests of test and integration, and list lines that none runs in pytest's own processes
	@tools/check.sh coverage

lint: setup ## Check without running: ruff, pyright, shellcheck, and the phrases of tools/prose.toml
	@tools/check.sh lint

format: setup ## Let ruff fix and format the Python files
	@.venv/bin/ruff check --fix --quiet && .venv/bin/ruff format

security: setup checkov-env lowest-env ## checkov, the lowest allowed versions, attacks on the embedded AWS; needs root, on Debian or Ubuntu
	@tools/security.sh

lab: setup torch-env ## Train with PyTorch, boot nodes and test what they report; needs root, on Debian or Ubuntu
	@tools/lab.sh lab

lab-bench: setup torch-env ## Measure how long a node takes to verify itself, and an empty job; needs root, on Debian or Ubuntu
	@tools/lab.sh lab-bench

mutants: setup mutants-env ## Change code, and list the changes with which all tests pass: CODE=FILE TESTS="FILE ..."; without them, templates of scripts
	@.venv/bin/python -m tools.mutants $(CODE) $(TESTS)

bench: setup ## Measure synthesis, template size, deployment, trn up, trn assess and uploads of checkpoints
	@.venv/bin/python -m tools.bench

docs: docs-env ## Build the site of docs/ into build/site; a warning, such as a broken link, is an error
	@tools/docs.sh

reference: setup ## Update the generated parts of docs/: settings, options, checks, errors, parameters, types, prices, rules
	@.venv/bin/python -m tools.reference

release: setup ## Build wheel and sdist into dist/, and try the wheel in a bare environment without Node
	@tools/release.sh

pins: setup ## Update the pins of requirements and package-lock.json after a range has changed; needs uv
	@tools/pins.sh

checkov-env docs-env lowest-env mutants-env torch-env: ## Prepare .venv-NAME from requirements/NAME.txt
	@tools/tool_env.sh $(@:-env=)
