#!/usr/bin/env bash
# Installs what the bench stat-peers compares with: apache-otava in a virtual environment of Python, with the versions in
# hack/otava/requirements.txt, and benchstat.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?usage: stat-peers.sh DIRECTORY}
benchstat=golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da

mkdir -p "$out"
if [[ ! -x $out/otava/bin/python ]]; then
  python3 -m venv "$out/otava" || { rm -rf "$out/otava"; echo "python3-venv is needed (Debian's package)" >&2; exit 1; }
fi
"$out/otava/bin/pip" install --quiet --requirement hack/otava/requirements.txt
GOBIN=$(realpath "$out") go install "$benchstat"
