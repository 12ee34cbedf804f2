#!/usr/bin/env bash
# web-test.sh OUT: tests the report's page and the web interface in Chromium, which it installs as root. Without
# Chromium it says so and skips; where the variable CI is set it fails.
set -euo pipefail
cd "$(dirname "$0")/.."
hack/packages.sh node=nodejs npm=npm chromium=chromium fio=fio
if ! command -v chromium >/dev/null; then
  echo "the tests of pages are skipped: chromium is not installed" >&2
  [[ -z ${CI:-} ]] || exit 1
  exit 0
fi
OUT=$(realpath "${1:-out}") CNSBENCH_BIN=$PWD/bin/cnsbench
export OUT CNSBENCH_BIN
cd web
[[ -d node_modules/playwright-core ]] || npm ci --no-progress
# The series of the history needs the machine for itself; the others mostly wait.
failed=0
node --test --test-reporter=spec test/history.test.mjs || failed=1
shopt -s extglob
node --test --test-reporter=spec --test-concurrency=2 test/!(history).test.mjs || failed=1
exit "$failed"
