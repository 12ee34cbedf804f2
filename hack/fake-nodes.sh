#!/usr/bin/env bash
# fake-nodes.sh DIRECTORY: builds kwok, which simulates nodes and the kubelets on them, at the version in hack/kwok, and
# writes its configuration beside it: the stages of its own module, by which nodes are ready and renew their Leases as
# kubelets do, and pods run at once. Its stage that removes deleted pods is left out: it removes them by name, and on a
# busy machine also a pod of the same name that was created since. The simulated pods of the bench remove them by UID.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?usage: fake-nodes.sh DIRECTORY}

mkdir -p "$out"
out=$(realpath "$out")
CGO_ENABLED=0 go build -C hack/kwok -trimpath -o "$out/kwok" sigs.k8s.io/kwok/cmd/kwok
stages=$(cd hack/kwok && go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)/kustomize/stage
{
  cat <<'EOF'
apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokConfiguration
options: {podPlayStageParallelism: 16, nodePlayStageParallelism: 16, nodeLeaseParallelism: 16}
EOF
  for stage in node/fast/node-initialize node/heartbeat-with-lease/node-heartbeat-with-lease pod/fast/pod-ready; do
    echo ---
    cat "$stages/$stage.yaml"
  done
} >"$out/kwok.yaml"
