"""The programs compared. Each makes a WireGuard interface in a host and takes its configuration from `wg setconf`."""
import os
import shutil
import subprocess

from .hosts import inside, run, succeeds, within

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CACHE = os.environ.get("KAPE_PEER_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.join(os.environ.get("HOME", "/root"), ".cache"), "kape", "peers"
)


class Program:
    """A userspace WireGuard: `command` followed by the interface name stays in the foreground."""

    def __init__(self, name, command, version, env=None):
        self.name, self.command, self.version, self.env = name, command, version, env or {}


def ours(name="kape", **env):
    path = os.environ.get("KAPE_WG") or os.path.join(TOP, ".build", "release", "kape-wg")
    return Program(name, [path, "-f"], run(path, "--version").splitlines()[0], env)


def wireguard_go():
    """The fastest userspace peer known: Debian 13's build, with TUN offload, UDP GSO and GRO. None when it cannot be had."""
    script = os.path.join(TOP, "Tests", "Interop", "peers", "wireguard-go-offload")
    result = subprocess.run([script, os.path.join(CACHE, "wireguard-go-offload")], capture_output=True, text=True)
    if result.returncode != 0:
        return None
    path = result.stdout.strip()
    env = {"WG_PROCESS_FOREGROUND": "1", "LOG_LEVEL": "silent"}
    return Program("wireguard-go", [path, "-f"], run(path, "--version").splitlines()[0], env)


def wireguard_go_old():
    path = shutil.which("wireguard-go")
    if not path:
        return None
    env = {"WG_PROCESS_FOREGROUND": "1", "LOG_LEVEL": "silent"}
    return Program("wireguard-go-2022", [path, "-f"], run(path, "--version").splitlines()[0], env)


def interface(side):
    """The name differs by side, since the configuration sockets of both hosts lie in one folder."""
    return f"ktun{side}"


class Tunnel:
    """A pair of programs, one at each host, connected: 10.77.0.1 and 10.77.0.2."""

    def __init__(self, hosts, near, far, mtu=1420):
        self.hosts, self.programs, self.mtu = hosts, (near, far), mtu
        self.processes = []

    def __enter__(self):
        keys = [(key, run("wg", "pubkey", input=key).strip()) for key in (run("wg", "genkey").strip() for _ in range(2))]
        try:
            for side, host in enumerate((self.hosts.a, self.hosts.b)):
                program = self.programs[side]
                process = self.hosts.start(host, *program.command, interface(side), env=program.env)
                self.processes.append(process)
                if not within(10, lambda: succeeds(host, "wg", "show", interface(side))):
                    raise RuntimeError(f"{program.name} did not start: {open(process.log).read()[-400:]}")
                other = 1 - side
                configuration = self.hosts.path(f"tunnel{side}.conf")
                with open(configuration, "w") as file:
                    file.write(
                        f"[Interface]\nPrivateKey = {keys[side][0]}\nListenPort = {51820 + side}\n"
                        f"[Peer]\nPublicKey = {keys[other][1]}\nAllowedIPs = 10.77.0.{other + 1}/32\n"
                        f"Endpoint = 192.0.2.{other + 1}:{51820 + other}\n"
                    )
                inside(host, "wg", "setconf", interface(side), configuration)
                run("ip", "-n", host, "link", "set", interface(side), "up", "mtu", str(self.mtu))
                run("ip", "-n", host, "addr", "add", f"10.77.0.{side + 1}/24", "dev", interface(side))
            if not within(10, lambda: succeeds(self.hosts.a, "ping", "-c", "1", "-W", "1", "10.77.0.2")):
                raise RuntimeError(f"no answer through {self.programs[0].name} to {self.programs[1].name}")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in self.processes:
            self.hosts.end(process)
        for side, host in enumerate((self.hosts.a, self.hosts.b)):
            within(5, lambda: not succeeds(host, "ip", "link", "show", interface(side)))
