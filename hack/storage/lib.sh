# Functions of ceph.sh and gluster.sh: a network namespace below a directory, its processes, waiting.
# The namespace is a file of the directory, not of /run/netns: several clusters can run on a machine, and nothing of
# them is elsewhere. Only its network is private; mounts made in it are seen by all.

die() { echo "$*" >&2; exit 1; }

# place DIRECTORY: makes the directory and sets D to its path.
place() {
  [[ $(id -u) == 0 ]] || die "needs root: mounts, loop devices and a network namespace"
  D=$(realpath -m "$1")
  # A unix socket's path has at most 107 bytes; the longest here is run/client.admin.PID.asok.
  ((${#D} <= 70)) || die "$D is too long for the unix sockets in it: set another directory (docs/how-to/ceph.md)"
  mkdir -p "$D"
}

netns_up() {
  mountpoint -q "$D/netns" && return
  : >"$D/netns"
  unshare --net="$D/netns" ip link set lo up
}

netns_down() {
  ! mountpoint -q "$D/netns" || umount "$D/netns"
  rm -f "$D/netns"
}

in_net() { nsenter --net="$D/netns" "$@"; }

# alive FILE: the process whose id is in the file runs, and has this directory in its arguments.
alive() {
  local pid
  pid=$(cat "$1" 2>/dev/null) && [[ -n $pid ]] && grep -qF "$D/" "/proc/$pid/cmdline" 2>/dev/null
}

# stop FILE [SIGNAL]: ends that process and waits for it, with SIGKILL after 30 s.
stop() {
  alive "$1" || { rm -f "$1"; return 0; }
  local pid i
  pid=$(cat "$1")
  kill "-${2:-TERM}" "$pid"
  for ((i = 0; i < 300; i++)); do
    alive "$1" || { rm -f "$1"; return 0; }
    sleep 0.1
  done
  kill -KILL "$pid"
  sleep 0.5
  rm -f "$1"
}

# background NAME PROGRAM…: starts a program that does not make itself a daemon; run/NAME.pid, log/NAME.log.
background() {
  local name=$1
  shift
  alive "$D/run/$name.pid" && return
  setsid nsenter --net="$D/netns" "$@" >>"$D/log/$name.log" 2>&1 </dev/null &
  echo $! >"$D/run/$name.pid"
}

# await SECONDS WHAT COMMAND…: waits until a command succeeds.
await() {
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || die "gave up waiting: $what; see $D/log"
    sleep 0.3
  done
}

# strays: processes that are left in the namespace; one without arguments is ending.
strays() {
  local ns p args
  ns=$(stat -Lc %i "$D/netns" 2>/dev/null) || return 0
  for p in /proc/[0-9]*; do
    [[ $(stat -Lc %i "$p/ns/net" 2>/dev/null) == "$ns" ]] || continue
    args=$(tr '\0' ' ' <"$p/cmdline" 2>/dev/null) || continue
    [[ -z $args ]] || echo "${p#/proc/} $args"
  done
}

# end_strays ends what is left in the namespace, and names what has to be killed.
end_strays() {
  local pid rest i signal
  for signal in TERM KILL; do
    while read -r pid rest; do
      [[ $signal == TERM ]] || echo "killed: $pid $rest" >&2
      kill "-$signal" "$pid" 2>/dev/null || true
    done < <(strays)
    for ((i = 0; i < 100; i++)); do
      [[ -n $(strays) ]] || return 0
      sleep 0.1
    done
  done
}
