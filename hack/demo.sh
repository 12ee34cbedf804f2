#!/usr/bin/env bash
# The main job: examples/quickstart.yaml on this machine. It prints where bundle
# and report lie.
set -euo pipefail
out=${1:-out}
bundle=$out/demo-$(date +%Y%m%d-%H%M%S)
mkdir -p "$out"
status=0
bin/cnsbench run examples/quickstart.yaml --out "$bundle" || status=$?
# 3: an SLO of the file was missed on this machine. That is a result.
[[ $status == 3 ]] && exit 0
exit "$status"
