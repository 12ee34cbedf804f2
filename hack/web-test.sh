#!/usr/bin/env bash
# web-test.sh OUT: tests the web interface in Chromium, which it installs as root.
set -euo pipefail
cd "$(dirname "$0")/.."
hack/packages.sh node=nodejs npm=npm chromium=chromium fio=fio
command -v chromium >/dev/null || { echo "web-test: skipped, chromium is not installed" >&2; exit 0; }
OUT=$(realpath "${1:-out}") CNSBENCH_BIN=$PWD/bin/cnsbench
export OUT CNSBENCH_BIN
cd web
[[ -d node_modules/playwright-core ]] || npm ci --no-progress
node --test --test-reporter=spec --test-concurrency=1 test/web.test.mjs
