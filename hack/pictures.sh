#!/usr/bin/env bash
# pictures.sh: makes docs/pictures: runs the demo twice, once in a terminal of tmux, a study, and takes pictures of
# what they show in Chromium; the series of a history has an injected change. Needs root, and a quiet machine for five
# minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
hack/packages.sh node=nodejs npm=npm chromium=chromium tmux=tmux /usr/share/fonts/truetype/dejavu=fonts-dejavu-core
# The pictures show the path of the runs: in a mount namespace of its own it is the same on each machine.
[[ ${1:-} == --private ]] || exec unshare --mount --propagation slave hack/pictures.sh --private
mount -t tmpfs -o mode=755 cnsbench-pictures /srv
runs=/srv/results CNSBENCH_BIN=$PWD/bin/cnsbench
export CNSBENCH_BIN
mkdir "$runs"
[[ -d web/node_modules/playwright-core ]] || npm ci --prefix web --no-progress

terminal() { tmux -u -L cnsbench-pictures "$@"; }
trap 'terminal kill-server 2>/dev/null || true' EXIT
terminal -f /dev/null new-session -d -x 100 -y 80 env PS1= PATH="$PWD/bin:$PATH" sh
terminal send-keys "clear; cnsbench run examples/quickstart.yaml --out $runs/quickstart; touch $runs/ended" Enter
until terminal capture-pane -p | grep -q 'running .* 1[0-9]s left'; do
  [[ ! -e $runs/ended ]]
  sleep 0.2
done
terminal capture-pane -p -e >"$runs/terminal-live.txt"
until [[ -e $runs/ended ]]; do sleep 0.2; done
terminal send-keys "clear; cnsbench show $runs/quickstart; touch $runs/shown" Enter
until [[ -e $runs/shown ]]; do sleep 0.2; done
terminal capture-pane -p -e >"$runs/terminal-result.txt"

bin/cnsbench run examples/quickstart.yaml --out "$runs/again" || [[ $? == 3 ]] # 3: an objective was not met
bin/cnsbench study run examples/study.yaml --blocks 6 --set spec.runtime=1s --out "$runs/study"
for i in {00..13}; do
  delay=300
  ((10#$i < 8)) || delay=600
  bin/cnsbench run web/test/history.yaml --out "/srv/ci/nightly/run-$i" \
    --inject "rpcs: {CreateVolume: {delay: ${delay}ms}}"
done
node web/test/pictures.mjs "$runs" /srv/ci
ls -l docs/pictures
