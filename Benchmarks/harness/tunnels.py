"""The programs compared. Each makes a WireGuard interface in a host and takes its configuration from `wg setconf`."""
import os
import shutil
import subprocess
import time

from .hosts import cpu_of, inside, memory_of, run, succeeds, wait_of, within

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CACHE = os.environ.get("KAPE_PEER_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.join(os.environ.get("HOME", "/root"), ".cache"), "kape", "peers"
)


class Program:
    """A userspace WireGuard: `command` followed by the interface name stays in the foreground. Without a command: the
    kernel's own."""

    def __init__(self, name, command, version, env=None):
        self.name, self.command, self.version, self.env = name, command, version, env or {}


def ours(name="kape", **env):
    path = os.environ.get("KAPE_WG") or os.path.join(TOP, ".build", "release", "kape-wg")
    return Program(name, [path, "-f"], run(path, "--version").splitlines()[0], env)


def foreground(name, path):
    env = {"WG_PROCESS_FOREGROUND": "1", "LOG_LEVEL": "silent"}
    return Program(name, [path, "-f"], run(path, "--version").splitlines()[0], env)


def wireguard_go():
    """The fastest userspace peer known: Debian 13's build, with TUN offload, UDP GSO and GRO. None when it cannot be had."""
    script = os.path.join(TOP, "Tests", "Interop", "peers", "wireguard-go-offload")
    result = subprocess.run([script, os.path.join(CACHE, "wireguard-go-offload")], capture_output=True, text=True)
    return foreground("wireguard-go", result.stdout.strip()) if result.returncode == 0 else None


def wireguard_go_2022():
    """Debian 12's build, without offloads."""
    path = shutil.which("wireguard-go")
    return foreground("wireguard-go-2022", path) if path else None


def kernel():
    """This kernel's own WireGuard, where it has it."""
    name = f"kbenchmodule{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        made = subprocess.run(["ip", "-n", name, "link", "add", "probe", "type", "wireguard"], capture_output=True)
    finally:
        subprocess.run(["ip", "netns", "del", name])
    return Program("kernel", None, "Linux " + os.uname().release) if made.returncode == 0 else None


def interface(side):
    """The name differs by side, since the configuration sockets of both hosts lie in one folder."""
    return f"ktun{side}"


def endpoint(side):
    return f"192.0.2.{side + 1}:{51820 + side}"


class Interface:
    """What both kinds of tunnel share: two ends, each an interface and a process, ended and awaited."""

    def __init__(self, hosts, mtu):
        self.hosts, self.mtu = hosts, mtu
        self.processes = []

    def up(self, side, host):
        run("ip", "-n", host, "link", "set", interface(side), "up", "mtu", str(self.mtu))
        run("ip", "-n", host, "addr", "add", f"10.77.0.{side + 1}/24", "dev", interface(side))

    def await_answer(self, what):
        if not within(10, lambda: succeeds(self.hosts.a, "ping", "-c", "1", "-W", "1", "10.77.0.2")):
            raise RuntimeError(f"no answer through {what}")

    def cpu(self):
        """Seconds of processor time, an end each; None for the kernel's own."""
        return [cpu_of(p.pid) if p else None for p in self.processes]

    def memory(self):
        return [memory_of(p.pid) for p in self.processes if p]

    def waited(self):
        return [wait_of(p.pid) for p in self.processes if p]

    def __exit__(self, *_):
        for process in self.processes:
            if process:
                self.hosts.end(process)
        for side, host in enumerate((self.hosts.a, self.hosts.b)):
            if side < len(self.processes) and self.processes[side] is None:
                subprocess.run(["ip", "-n", host, "link", "del", interface(side)], stderr=subprocess.DEVNULL)
            within(5, lambda: not succeeds(host, "ip", "link", "show", interface(side)))


class Tunnel(Interface):
    """A pair of programs, one at each host, connected: 10.77.0.1 and 10.77.0.2. `far_peers` is configuration of further
    peers at the far end; how long `wg setconf` took there is in `setconf_seconds`."""

    def __init__(self, hosts, near, far, mtu=1420, far_peers=""):
        super().__init__(hosts, mtu)
        self.programs, self.far_peers = (near, far), far_peers
        self.setconf_seconds = None

    def start(self, side, host):
        program = self.programs[side]
        if program.command is None:
            run("ip", "-n", host, "link", "add", interface(side), "type", "wireguard")
            self.processes.append(None)
            return
        process = self.hosts.start(host, *program.command, interface(side), env=program.env)
        self.processes.append(process)
        if not within(10, lambda: succeeds(host, "wg", "show", interface(side))):
            with open(process.log, errors="replace") as log:
                raise RuntimeError(f"{program.name} did not start: {log.read()[-400:]}")

    def configure(self, side, host, keys):
        other = 1 - side
        path = self.hosts.path(f"tunnel{side}.conf")
        with open(path, "w") as file:
            file.write(
                f"[Interface]\nPrivateKey = {keys[side][0]}\nListenPort = {51820 + side}\n"
                f"[Peer]\nPublicKey = {keys[other][1]}\nAllowedIPs = 10.77.0.{other + 1}/32\nEndpoint = {endpoint(other)}\n"
            )
            if side == 1:
                file.write(self.far_peers)
        begin = time.monotonic()
        inside(host, "wg", "setconf", interface(side), path)
        self.setconf_seconds = time.monotonic() - begin

    def __enter__(self):
        keys = [(key, run("wg", "pubkey", input=key).strip()) for key in (run("wg", "genkey").strip() for _ in range(2))]
        self.public_keys = [public for _, public in keys]
        try:
            for side, host in enumerate((self.hosts.a, self.hosts.b)):
                self.start(side, host)
                self.configure(side, host, keys)
                self.up(side, host)
            self.await_answer(f"{self.programs[0].name} to {self.programs[1].name}")
        except BaseException:
            self.__exit__()
            raise
        return self


class FixedKeyTunnel(Interface):
    """The packet path in WireGuard's shape, without a cipher or with one fixed key (native/fixed_key.c)."""

    def __init__(self, hosts, program, cipher, mtu=1420):
        super().__init__(hosts, mtu)
        self.program, self.cipher = program, cipher

    def __enter__(self):
        try:
            for side, host in enumerate((self.hosts.a, self.hosts.b)):
                address, port = endpoint(1 - side).split(":")
                self.processes.append(
                    self.hosts.start(host, self.program, interface(side), self.cipher, str(51820 + side), address, port, str(self.mtu))
                )
                if not within(10, lambda: succeeds(host, "ip", "link", "show", interface(side))):
                    with open(self.processes[-1].log, errors="replace") as log:
                        raise RuntimeError(f"fixed_key {self.cipher} did not start: {log.read()[-400:]}")
                self.up(side, host)
            self.await_answer(f"fixed_key {self.cipher}")
        except BaseException:
            self.__exit__()
            raise
        return self
