# Sourced by the interop tests. Each test works in network namespaces of its own, whose names begin with its prefix, and in a temporary folder
# $work; at the end, also when interrupted, everything that it started is ended by pid and everything that it made is removed.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
kape=${KAPE:-$top/.build/release/kape}
kape_wg=${KAPE_WG:-$top/.build/release/kape-wg}
peer_cache=${KAPE_PEER_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/kape/peers}
umask 077
work=$(mktemp -d "${TMPDIR:-/tmp}/kape-test.XXXXXX")
export KAPE_STATE_DIR=$work/kept
passed=0 failed=0 skipped=0 finished=no
pids=() namespaces=()

[[ $(id -u) == 0 ]] || { echo "$(basename "$0"): needs root, for network namespaces" >&2; exit 3; }

cleanup() {
  local status=$? pid namespace
  trap - EXIT INT TERM
  # A test that stops half way has failed, whatever the command that stopped it returned.
  [[ $finished == yes || $status != 0 ]] || { echo "$(basename "$0"): stopped before its end"; status=1; }
  for pid in "${pids[@]:-}"; do [[ -z $pid ]] || kill "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]:-}"; do [[ -z $pid ]] || wait "$pid" 2>/dev/null || true; done
  for namespace in "${namespaces[@]:-}"; do
    [[ -n $namespace ]] || continue
    for pid in $(ip netns pids "$namespace" 2>/dev/null); do kill "$pid" 2>/dev/null || true; done
    ip netns del "$namespace" 2>/dev/null || true
    rm -rf "/etc/netns/$namespace"
  done
  rm -rf "$work"
  exit $status
}
trap cleanup EXIT
trap 'exit 130' INT TERM

pass() { passed=$((passed + 1)); echo "ok    $*"; }
fail() { failed=$((failed + 1)); echo "FAIL  $*"; }
skip() { skipped=$((skipped + 1)); echo "skip  $*"; }
# check NAME COMMAND...: passes when the command succeeds; its output is shown when it does not.
check() {
  local name=$1 log=$work/check.log
  shift
  if "$@" >"$log" 2>&1; then pass "$name"; else fail "$name"; sed 's/^/        /' "$log" | tail -15; fi
}
# finish: the closing line, and the exit status.
finish() {
  finished=yes
  echo "$passed passed, $failed failed, $skipped skipped"
  [[ $failed == 0 && $passed -gt 0 ]]
}

# new_namespace NAME...: with loopback up.
new_namespace() {
  local name
  for name; do
    ip netns del "$name" 2>/dev/null || true
    ip netns add "$name"
    namespaces+=("$name")
    ip -n "$name" link set lo up
  done
}
# wire A B NETWORK: one wire between two namespaces, v$A and v$B: NETWORK.1 and .2, fd00:NETWORK(dots as colons)::1 and ::2.
wire() {
  local a=$1 b=$2 net=$3 net6=fd00:${3//./:}
  ip link add "v$a" netns "$a" mtu 1500 type veth peer name "v$b" netns "$b"
  ip -n "$a" addr add "$net.1/24" dev "v$a"
  ip -n "$b" addr add "$net.2/24" dev "v$b"
  ip -n "$a" addr add "$net6::1/64" dev "v$a" nodad
  ip -n "$b" addr add "$net6::2/64" dev "v$b" nodad
  ip -n "$a" link set "v$a" up
  ip -n "$b" link set "v$b" up
}
# inside NAMESPACE COMMAND...
inside() { ip netns exec "$@"; }
# background LOG COMMAND...: starts it; the pid is in $started, and it is ended with the test.
background() {
  local log=$1
  shift
  "$@" >"$log" 2>&1 </dev/null &
  started=$!
  pids+=("$started")
}
# within SECONDS COMMAND...: tries until it succeeds.
within() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [[ $SECONDS -lt $end ]] || return 1
    sleep 0.1
  done
}
