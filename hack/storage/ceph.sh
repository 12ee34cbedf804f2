#!/usr/bin/env bash
# ceph.sh up|down|status DIRECTORY BIN: a Ceph of Debian's packages (one mon, mgr and mds, three OSDs) in a network
# namespace of its own, with the test driver BIN/cephdriver in front of it. All that it makes is below DIRECTORY; down
# undoes it and keeps log and truth. docs/how-to/ceph.md
set -euo pipefail
here=$(dirname "$(realpath "$0")")
. "$here/lib.sh"
[[ $# == 3 ]] || die "usage: ceph.sh up|down|status DIRECTORY BIN"
place "$2"
BIN=$(realpath -m "$3")
export CEPH_CONF=$D/ceph.conf PATH=$PATH:/usr/sbin:/sbin
daemons=(mds.a osd.0 osd.1 osd.2 mgr.a mon.a) # in the order of stopping

ceph() { in_net timeout 60 ceph "$@"; }

write_conf() {
  local fsid
  fsid=$(cat /proc/sys/kernel/random/uuid)
  sed "s|@D@|$D|g; s|@FSID@|$fsid|g" "$here/ceph.conf.in" >"$CEPH_CONF"
  # The file that ceph-csi has for its clusters.
  echo '[{"clusterID": "cnsbench", "monitors": ["v2:127.0.0.1:3300,v1:127.0.0.1:6789"]}]' >"$D/csi-config.json"
}

make_mon() {
  (umask 077
  ceph-authtool -C "$D/mon.keyring" -g -n mon. --cap mon 'allow *'
  ceph-authtool -C "$D/admin.keyring" -g -n client.admin --cap mon 'allow *' --cap osd 'allow *' --cap mds 'allow *' \
    --cap mgr 'allow *'
  ceph-authtool "$D/mon.keyring" --import-keyring "$D/admin.keyring"
  monmaptool --create --fsid "$(sed -n 's/^fsid = //p' "$CEPH_CONF")" --addv a '[v2:127.0.0.1:3300,v1:127.0.0.1:6789]' \
    --enable-all-features "$D/monmap"
  ceph-mon -i a --mkfs --monmap "$D/monmap" --keyring "$D/mon.keyring") >>"$D/log/mkfs.log" 2>&1
}

make_osd() { # N
  local uuid key
  uuid=$(cat /proc/sys/kernel/random/uuid)
  key=$(ceph-authtool --gen-print-key)
  mkdir -p "$D/osd.$1"
  ceph osd new "$uuid" -i - <<<"{\"cephx_secret\": \"$key\"}" >/dev/null
  ceph-authtool -C "$D/osd.$1/keyring" -n "osd.$1" --add-key "$key" >/dev/null
  in_net ceph-osd -i "$1" --mkfs --osd-uuid "$uuid" >>"$D/log/mkfs.log" 2>&1
}

start() { # NAME, such as osd.0: starts the daemon unless it runs
  alive "$D/run/$1.pid" || in_net "ceph-${1%.*}" -c "$CEPH_CONF" -i "${1#*.}" >>"$D/log/start.log" 2>&1
}

# pool_commands prints the commands that make the pools.
pool_commands() {
  local s p
  echo osd erasure-code-profile set ec21 k=2 m=1 crush-failure-domain=osd stripe_unit=4096
  for s in cfs rbd; do
    echo "osd pool create $s.r1 8 8 replicated replicated_rule --size 1"
    echo "osd pool create $s.r3 8 8 replicated replicated_rule --size 3"
    echo "osd pool create $s.ec 8 8 erasure ec21"
    echo "osd pool set $s.ec allow_ec_overwrites true"
  done
  for p in r1 r3 ec; do echo "osd pool application enable rbd.$p rbd"; done
  echo osd pool create cfs.meta 8 8 replicated replicated_rule --size 3
  # The first data pool has the backtraces of all files: three copies.
  echo fs new cfs cfs.meta cfs.r3
  echo fs add_data_pool cfs cfs.r1
  echo fs add_data_pool cfs cfs.ec
}

# make_pools gives them to one process: each start of the program ceph costs half a second. It goes on after an error.
make_pools() {
  pool_commands | in_net timeout 300 ceph
  [[ $(ceph fs ls) == *'data pools: [cfs.r3 cfs.r1 cfs.ec ]'* ]]
}

make_cluster() {
  mkdir -p "$D"/{mon,mgr,mds,run,log,truth}
  netns_up
  write_conf
  make_mon
  start mon.a
  await 60 "the monitor" ceph mon stat
  ceph auth get-or-create mgr.a mon 'allow profile mgr' osd 'allow *' mds 'allow *' -o "$D/mgr/keyring"
  start mgr.a
  local i
  for i in 0 1 2; do make_osd "$i"; done # in this order: the monitor numbers them
  for i in 0 1 2; do start "osd.$i" & done
  wait
  ceph auth get-or-create mds.a mon 'profile mds' mgr 'profile mds' mds 'allow *' osd 'allow *' -o "$D/mds/keyring"
  start mds.a
  await 90 "three OSDs" osds_up
  make_pools >>"$D/log/pools.log" 2>&1 || die "cannot make the pools: $(tail -n 1 "$D/log/pools.log")"
  write_secrets
  : >"$D/made"
}

# write_secrets writes the Secrets of examples/ceph with the cluster's key.
write_secrets() {
  local key
  key=$(ceph-authtool -p -n client.admin "$D/admin.keyring")
  (umask 077; sed "s|the key of client.admin|$key|" "$here/../../examples/ceph/secret.yaml" >"$D/secret.yaml")
}

serves() { alive "$D/run/driver.pid" && [[ -S $D/cephfs.sock && -S $D/rbd.sock ]]; }
osds_up() { ceph osd stat | grep -q '3 up'; }
fs_active() { ceph fs status cfs | grep -q active; }
pgs_clean() { ceph pg stat | grep -Eq '^([0-9]+) pgs: \1 active\+clean;'; }

up() {
  local begin=$SECONDS i
  if [[ ! -e $D/made ]]; then
    [[ ! -e $CEPH_CONF ]] || down # an up that was killed
    trap 'status=$?; trap - EXIT; ((status == 0)) || { down >&2; }; exit $status' EXIT
    make_cluster
  fi
  netns_up
  for ((i = ${#daemons[@]} - 1; i >= 0; i--)); do start "${daemons[i]}"; done
  await 90 "three OSDs" osds_up
  await 90 "the file system" fs_active
  await 90 "clean placement groups" pgs_clean
  alive "$D/run/driver.pid" || rm -f "$D/cephfs.sock" "$D/rbd.sock"
  background driver "$BIN/cephdriver" -dir "$D/"
  await 30 "the driver" serves
  trap - EXIT
  echo "Ceph is up in $((SECONDS - begin)) s: CEPH_CONF=$CEPH_CONF nsenter --net=$D/netns ceph -s"
  echo "CSI: unix://$D/cephfs.sock unix://$D/rbd.sock; classes: examples/ceph; secrets: $D/secret.yaml"
}

down() {
  [[ -e $CEPH_CONF || -e $D/netns ]] || { echo "no Ceph in $D"; return 0; }
  stop "$D/run/driver.pid"
  # Clients first: a ceph-fuse whose mds has ended hangs.
  [[ ! -d $D/node || ! -x $BIN/cephdriver ]] || in_net "$BIN/cephdriver" -dir "$D/" -unstage-all || true
  local n
  for n in "${daemons[@]}"; do stop "$D/run/$n.pid"; done
  end_strays
  netns_down
  find "$D" -mindepth 1 -maxdepth 1 ! -name log ! -name truth -exec rm -rf --one-file-system {} +
}

status() {
  [[ -e $D/made ]] || die "no Ceph in $D (make ceph-up)"
  local n bad=0
  for n in "${daemons[@]}" driver; do
    alive "$D/run/$n.pid" || { echo "$n does not run" >&2; bad=1; }
  done
  ceph -s || bad=1
  return $bad
}

case $1 in
up | down | status) "$1" ;;
*) die "usage: ceph.sh up|down|status DIRECTORY BIN" ;;
esac
