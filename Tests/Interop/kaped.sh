# Sourced by the tests of kaped, after client.sh: the daemon on the client, and apps and providers of users without accounts.
kaped=${KAPED:-$(dirname "$kape")/kape-control}
# build_providers: the tests' own providers, as programs that need no library of Swift's; their folder in $providers.
build_providers() {
  providers=${KAPE_PROVIDERS:-}
  [[ -z $providers ]] || return 0
  (cd "$top" && for product in EchoProvider HostileProvider; do
    swift build -c release --static-swift-stdlib --product $product
  done) >"$work/build.log" 2>&1 || { tail -20 "$work/build.log"; return 1; }
  providers=$top/.build/release
}
# on COMMAND...: on the client, with kaped's folders where users can get to them.
on() { client env KAPE_RUN_DIR=/run/kape KAPE_STATE_DIR=/run/kape-state "$@"; }
# ask UID OPERATION [NAME=VALUE]...: what kaped answers that user.
ask() { local user=$1; shift; on python3 "$here/kaped.py" --as "$user" "$@"; }
# kaped_up [OPTION]...: starts it; its process in $daemon.
kaped_up() {
  on "$kaped" daemon --verbose "$@" >>"$work/kaped.log" 2>&1 &
  within 10 answers || { cat "$work/kaped.log"; return 1; }
  daemon=$(on cat /run/kape/kaped.lock)
  pids+=("$daemon")
}
answers() { ask 4711 hello; }
# kaped_down [SIGNAL]: and waits for its end.
kaped_down() { kill "-${1:-TERM}" "$daemon" 2>/dev/null || true; within 20 ended "$daemon"; }
ended() { ! kill -0 "$1" 2>/dev/null; }
# program NAME FILE: a provider's executable at /run/prog/NAME on the client, everybody's to run.
program() {
  on mkdir -p /run/prog
  on chmod 755 /run/prog
  on install -m 755 "$2" "/run/prog/$1"
}
# install_profile UID PROFILE PROGRAM [NAME=VALUE]...
install_profile() {
  local user=$1 profile=$2 program=$3
  shift 3
  ask "$user" profile.install profile="$profile" executable="/run/prog/$program" enabled:=true "$@"
}
# status_is UID PROFILE STATUS
status_is() { [[ $(ask "$1" tunnel.status profile="$2") == *"\"status\": \"$3\""* ]]; }
# start UID PROFILE [WORDS]: and waits until it is up; else tells why it is not.
start() {
  ask "$1" tunnel.start profile="$2" words="${3:-}" >/dev/null || return 1
  within 15 settled_as "$1" "$2"
  status_is "$1" "$2" connected || { ask "$1" tunnel.status profile="$2"; return 1; }
}
settled_as() { status_is "$1" "$2" connected || status_is "$1" "$2" disconnected; }
stop() { ask "$1" tunnel.stop profile="$2"; }
# say UID PROFILE MESSAGE: the provider's answer.
say() { ask "$1" tunnel.message profile="$2" message="$3"; }
# provider_of UID: its process; nothing when there is none.
provider_of() { on sh -c 'for each in /proc/[0-9]*; do case $(readlink $each/exe) in /run/prog/*) [ "$(stat -c %u $each)" = '"$1"' ] && echo ${each#/proc/}; ;; esac; done; true'; }
gone() { [[ -z $(provider_of "$1") ]]; }
last_error() { ask "$1" tunnel.status profile="$2" | python3 -c 'import json, sys; error = json.load(sys.stdin)["error"]; print(error and error["message"])'; }
