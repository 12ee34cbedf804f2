#!/usr/bin/env bash
# Builds the script of the report and the web interface from web/, into the Go packages that embed them. With two
# arguments they go there instead: web.sh REPORT-FOLDER APP-FOLDER.
set -euo pipefail
cd "$(dirname "$0")/.."
hack/packages.sh node=nodejs npm=npm
[[ $# == 0 ]] || export WEB_REPORT_DIR=$(realpath "$1") WEB_APP_DIR=$(realpath "$2")
cd web
# npm ci takes a minute: only if the lock file has changed since.
if ! cmp -s package-lock.json node_modules/.cnsbench-lock; then
  npm ci --no-progress
  cp package-lock.json node_modules/.cnsbench-lock
fi
# Types of the API. What is committed is compared where the results go elsewhere.
types=src/app/api.d.ts
if [[ $# == 0 ]]; then
  npx --no-install openapi-typescript openapi.yaml -o $types >/dev/null
else
  npx --no-install openapi-typescript openapi.yaml --check -o $types >/dev/null
fi
npm run --silent check
npm run --silent build -- --logLevel warn
