# Starts etcd with its data on the volume. It listens on sockets in the pod only, whose names need a port.
set -eu
cd /socket
exec {{binaries}}/etcd --data-dir /data/etcd --logger zap --log-level warn --listen-client-urls unix://etcd:0 \
    --advertise-client-urls unix://etcd:0 --listen-peer-urls unix://peer:0 \
    --initial-advertise-peer-urls unix://peer:0 --initial-cluster default=unix://peer:0 {{settings}}
