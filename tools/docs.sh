#!/usr/bin/env bash
# make docs: builds the site of docs/ into build/site, as mkdocs.yml says.

cd -P "$(dirname "$0")/.."
# shellcheck source=tools/steps.sh
source tools/steps.sh

name="make docs"

# Built from scratch, because a page from the cache shows no warning.
step "pages of docs/ into build/site" .venv-docs/bin/zensical build --clean --strict --config-file mkdocs.yml ||
  fail "$name: a page has a warning, see above"
finish "$name: build/site/index.html is ready"
