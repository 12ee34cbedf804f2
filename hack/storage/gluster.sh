#!/usr/bin/env bash
# gluster.sh up|down|status DIRECTORY BIN: GlusterFS of Debian's packages with three volumes (distribute, replica 3,
# disperse 2+1) in a network namespace of its own, with the test driver BIN/glusterdriver in front of it. All that it
# makes is below DIRECTORY; down undoes it and keeps log and truth. docs/how-to/ceph.md
set -euo pipefail
here=$(dirname "$(realpath "$0")")
. "$here/lib.sh"
[[ $# == 3 ]] || die "usage: gluster.sh up|down|status DIRECTORY BIN"
place "$2"
BIN=$(realpath -m "$3")
export PATH=$PATH:/usr/sbin:/sbin
host=127.0.0.2 # 127.0.0.1 is refused for bricks
volumes=(distribute replica disperse)

gluster() {
  in_net timeout 120 gluster --mode=script --glusterd-sock="$D/run/glusterd.sock" --log-file="$D/log/cli.log" "$@"
}

write_conf() {
  cat >"$D/glusterd.vol" <<C
volume management
    type mgmt/glusterd
    option working-directory $D/work
    option run-directory $D/run
    option logging-directory $D/log
    option glusterd-sockfile $D/run/glusterd.sock
    option transport-type socket
    option transport.socket.listen-port 24007
    option ping-timeout 0
    option base-port 49152
    option max-port 49300
end-volume
C
}

start_glusterd() {
  alive "$D/run/glusterd.pid" ||
    in_net glusterd -f "$D/glusterd.vol" -l "$D/log/glusterd.log" -p "$D/run/glusterd.pid" -L WARNING
}

make_volumes() {
  local b=$host:$D/bricks v
  gluster volume create distribute "$b"/d{1,2,3} force
  gluster volume create replica replica 3 "$b"/r{1,2,3} force
  gluster volume create disperse disperse 3 redundancy 1 "$b"/e{1,2,3} force
  for v in "${volumes[@]}"; do
    # Without both, what a program writes with O_DIRECT ends in the page cache of the bricks.
    gluster volume set "$v" network.remote-dio disable
    gluster volume set "$v" performance.strict-o-direct on
    gluster volume start "$v"
  done
}

bricks_up() { # glusterd forgets to start one now and then
  local v
  for v in "${volumes[@]}"; do
    gluster volume status "$v" detail | grep -Eq '^Online *: N' || continue
    gluster volume start "$v" force
    return 1
  done
}

mount_volumes() { # where the driver makes the directories that are its volumes
  local v
  for v in "${volumes[@]}"; do
    mkdir -p "$D/mnt/$v"
    mountpoint -q "$D/mnt/$v" ||
      in_net glusterfs -s "$host" --volfile-id="$v" -l "$D/log/mnt-$v.log" -p "$D/run/mnt-$v.pid" "$D/mnt/$v"
    [[ $(findmnt -no FSTYPE "$D/mnt/$v") == fuse.glusterfs ]] || die "$D/mnt/$v is not mounted; see $D/log/mnt-$v.log"
  done
}

serves() { alive "$D/run/driver.pid" && [[ -S $D/gluster.sock ]]; }

up() {
  local begin=$SECONDS
  mkdir -p "$D"/{work,run,log/bricks,bricks,mnt,truth}
  if [[ ! -e $D/made ]]; then
    [[ ! -e $D/glusterd.vol ]] || { down; mkdir -p "$D"/{work,run,log/bricks,bricks,mnt,truth}; }
    trap 'status=$?; trap - EXIT; ((status == 0)) || { down >&2; }; exit $status' EXIT
    netns_up
    write_conf
    start_glusterd
    await 30 "glusterd" gluster volume list
    make_volumes >>"$D/log/make.log" 2>&1 || die "cannot make the volumes: $(tail -n 1 "$D/log/make.log")"
    : >"$D/made"
  fi
  netns_up
  start_glusterd
  await 30 "glusterd" gluster volume list
  await 60 "the bricks" bricks_up
  mount_volumes
  alive "$D/run/driver.pid" || rm -f "$D/gluster.sock"
  background driver "$BIN/glusterdriver" -dir "$D/" -server "$host"
  await 30 "the driver" serves
  trap - EXIT
  echo "GlusterFS is up in $((SECONDS - begin)) s; CSI: unix://$D/gluster.sock; classes: examples/ceph/gluster.yaml"
}

down() {
  [[ -e $D/glusterd.vol || -e $D/netns ]] || { echo "no GlusterFS in $D"; return 0; }
  stop "$D/run/driver.pid"
  [[ ! -x $BIN/glusterdriver ]] || in_net "$BIN/glusterdriver" -dir "$D/" -unstage-all || true
  local v sockets
  sockets=$(strays | grep -oE '(/var)?/run/gluster/[^ ]+\.socket' || true) # the bricks', in a place that is not ours
  for v in "${volumes[@]}"; do
    ! mountpoint -q "$D/mnt/$v" || umount "$D/mnt/$v" || umount -l "$D/mnt/$v"
    stop "$D/run/mnt-$v.pid"
  done
  stop "$D/run/glusterd.pid"
  end_strays # the bricks
  netns_down
  xargs -r rm -f <<<"$sockets"
  find "$D" -mindepth 1 -maxdepth 1 ! -name log ! -name truth -exec rm -rf --one-file-system {} +
}

status() {
  [[ -e $D/made ]] || die "no GlusterFS in $D (make gluster-up)"
  local bad=0
  alive "$D/run/driver.pid" || { echo "the driver does not run" >&2; bad=1; }
  gluster volume status || bad=1
  bricks_up || { echo "a brick was not online" >&2; bad=1; }
  return $bad
}

case $1 in
up | down | status) "$1" ;;
*) die "usage: gluster.sh up|down|status DIRECTORY BIN" ;;
esac
