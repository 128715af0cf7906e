# Sourced by the tests of `kape up`: three hosts on one wire, of which the client has /etc and /run of its own.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# hosts PREFIX: namespaces $a (the client), $b (the server, with the wire's bridge) and $c (a stranger); 192.0.2.1 to .3 and 2001:db8::1 to ::3.
hosts() {
  local host
  a=$1-a b=$1-b c=$1-c
  new_namespace $a $b $c
  ip -n $b link add the-wire type bridge
  ip -n $b link set the-wire up
  for host in $a $c; do
    ip link add wire netns "$host" mtu 1500 type veth peer name "to-$host" netns $b
    ip -n $b link set "to-$host" master the-wire up
    ip -n "$host" link set wire up
  done
  ip -n $a addr add 192.0.2.1/24 dev wire; ip -n $a addr add 2001:db8::1/64 dev wire nodad
  ip -n $b addr add 192.0.2.2/24 dev the-wire; ip -n $b addr add 2001:db8::2/64 dev the-wire nodad
  ip -n $c addr add 192.0.2.3/24 dev wire; ip -n $c addr add 2001:db8::3/64 dev wire nodad
  within 10 settled
  # The kernel may take a moment to make the networks of the addresses.
  within 5 ip -n $a route add default via 192.0.2.2
  within 5 ip -n $a route add default via 2001:db8::2
  mkdir -p "$work/etc/wireguard" "$work/etc/iproute2"
  cp /etc/iproute2/* "$work/etc/iproute2/" 2>/dev/null || true
  printf '127.0.0.1 localhost\n' >"$work/etc/hosts"
  printf '# of the machine\nnameserver 192.0.2.2\nsearch example.org\noptions timeout:1' >"$work/etc/resolv.conf"
  chmod 644 "$work/etc/hosts" "$work/etc/resolv.conf"
  # A process that holds the client's mount namespace.
  mkfifo "$work/ready"
  ip netns exec $a unshare -m sh -c "mount --make-rprivate /; mount --bind '$work/etc' /etc; mount -t tmpfs tmpfs /run; echo >'$work/ready'; exec sleep 100000" &
  client_process=$!
  pids+=("$client_process")
  read -r _ <"$work/ready"
  key_a=$(wg genkey) key_b=$(wg genkey)
  pub_a=$(wg pubkey <<<"$key_a") pub_b=$(wg pubkey <<<"$key_b")
}
settled() { local host; for host in $a $b $c; do [[ -z $(ip -n "$host" -6 addr show tentative) ]] || return 1; done; }
# client COMMAND...: on the client, with its own /etc and /run.
client() { nsenter -t "$client_process" -n -m --wd="$PWD" -- env KAPE_RUN_DIR="$work/run" "$@"; }
# server: a WireGuard server for the client on $b, 10.77.0.2 and fd77::2, port 51820.
server() {
  inside $b "$kape_wg" kup-server
  inside $b wg set kup-server private-key <(echo "$key_b") listen-port 51820 peer "$pub_a" allowed-ips 10.77.0.1/32,fd77::1/128,192.0.2.1/32
  ip -n $b addr add 10.77.0.2/24 dev kup-server; ip -n $b addr add fd77::2/64 dev kup-server nodad
  ip -n $b link set kup-server up
}
stop_server() { ip -n $b link del kup-server 2>/dev/null || true; }

# configuration NAME: a file for the client; [Interface] and its key come before the lines on standard input.
configuration() { { printf '[Interface]\nPrivateKey = %s\n' "$key_a"; cat; } >"$work/$1.conf"; }
peer_lines() { printf '[Peer]\nPublicKey = %s\n' "$pub_b"; [[ -z $1 ]] || echo "AllowedIPs = $1"; [[ -z ${2:-} ]] || echo "Endpoint = $2"; }
up() { client "$kape" up "$work/$1.conf"; }
down() { client "$kape" down "$1"; }
process_of() { cat "$work/run/$1/lock"; }
# state: all that a tunnel could have changed of the client, byte for byte.
state() {
  client sh -c '
    ip -j addr; ip -j link; ip -j -4 route show table all; ip -j -6 route show table all; ip -j -4 rule; ip -j -6 rule
    nft list ruleset; sysctl net.ipv4.conf.all.src_valid_mark; ls -A /etc /etc/wireguard /run; stat -c "%a %u %N" /etc/resolv.conf
    cat /etc/resolv.conf'
}

equal() { [[ $1 == "$2" ]] || { diff <(echo "$1") <(echo "$2") | cut -c1-600 | head -20; return 1; }; }
contains() { [[ $1 == *"$2"* ]] || { printf 'got:    %s\nwanted in it: %s\n' "$1" "$2"; return 1; }; }
lacks() { [[ $1 != *"$2"* ]] || { printf 'got: %s\nnot wanted in it: %s\n' "$1" "$2"; return 1; }; }
exits() { local wanted=$1 status=0; shift; "$@" || status=$?; [[ $status == "$wanted" ]] || { echo "exit $status, not $wanted"; return 1; }; }
# unchanged BEFORE COMMAND...: the command does what it does, and afterwards the client is as it was.
unchanged() { local before=$1; shift; "$@" && equal "$before" "$(state)"; }
