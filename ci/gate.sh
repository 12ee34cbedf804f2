#!/usr/bin/env bash
# gate.sh STUDY BASELINE NOW SUMMARY: runs a study into the folder NOW and compares it with that of an earlier run, the
# folder BASELINE. The comparison goes to the file SUMMARY, as Markdown. The exit status is that of cnsbench compare
# --fail-on worse: 5 if something is worse, 6 if there was nothing to judge. Without a BASELINE it is 0: NOW can be the
# baseline of the next run. CNSBENCH_FLAGS has further flags of cnsbench study run.
set -euo pipefail
study=$1 baseline=$2 now=$3 summary=$4
# shellcheck disable=SC2086 # flags are words
cnsbench study run "$study" --out "$now" ${CNSBENCH_FLAGS:-}
if [[ ! -d $baseline ]]; then
  echo "There is no earlier study in \`$baseline\` to compare with." | tee "$summary"
  exit 0
fi
status=0
cnsbench compare "$now" --baseline "$baseline" --fail-on worse --output markdown >"$summary" || status=$?
cat "$summary"
exit $status
