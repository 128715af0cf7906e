"""Two hosts on one wire: network namespaces, a veth pair, and processes in them that are ended by pid."""
import os
import signal
import subprocess
import tempfile
import time


class Hosts:
    def __init__(self, prefix="kbench"):
        self.prefix = f"{prefix}{os.getpid()}"
        self.a, self.b = self.prefix + "a", self.prefix + "b"
        self.processes = []
        self.folder = tempfile.TemporaryDirectory(prefix="kape-bench.")

    def __enter__(self):
        for name in (self.a, self.b):
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "link", "add", "wire", "netns", self.a, "mtu", "1500", "type", "veth", "peer", "name", "wire", "netns", self.b)
        for name, last in ((self.a, 1), (self.b, 2)):
            run("ip", "-n", name, "addr", "add", f"192.0.2.{last}/24", "dev", "wire")
            run("ip", "-n", name, "link", "set", "wire", "up")
        return self

    def __exit__(self, *_):
        for process in list(self.processes):
            self.end(process)
        for name in (self.a, self.b):
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)
        self.folder.cleanup()

    def start(self, host, *command, env=None, stdout=None, stdin=subprocess.DEVNULL):
        """Starts a process inside a host; its output goes to a file in the folder."""
        log = open(os.path.join(self.folder.name, f"log{len(self.processes)}.{time.monotonic_ns()}"), "w+b")
        process = subprocess.Popen(
            ["ip", "netns", "exec", host, *command], stdin=stdin, stdout=stdout or log, stderr=log, env={**os.environ, **(env or {})}
        )
        process.log = log.name
        self.processes.append(process)
        return process

    def end(self, process, patience=5):
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(patience)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if process in self.processes:
            self.processes.remove(process)

    def path(self, name):
        return os.path.join(self.folder.name, name)


def run(*command, **options):
    """Runs a command to its end; its output, or an error that shows what it printed."""
    result = subprocess.run(command, capture_output=True, text=True, **options)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit {result.returncode}: {(result.stderr or result.stdout).strip()[-400:]}")
    return result.stdout


def inside(host, *command, **options):
    return run("ip", "netns", "exec", host, *command, **options)


def within(seconds, condition):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def succeeds(host, *command):
    return subprocess.run(["ip", "netns", "exec", host, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def memory_of(pid):
    """Owned (RssAnon + RssShmem), resident now and at its peak, in bytes."""
    values = {}
    with open(f"/proc/{pid}/status") as status:
        for line in status:
            key, _, value = line.partition(":")
            if key in ("RssAnon", "RssShmem", "VmRSS", "VmHWM"):
                values[key] = int(value.split()[0]) * 1024
    return {"owned": values["RssAnon"] + values["RssShmem"], "resident": values["VmRSS"], "peak": values["VmHWM"]}


def cpu_of(pid):
    """User and system time of a process so far, all its threads, in seconds."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_of(pid):
    """How long the threads of a process that are there now have stood ready in line for a processor so far, in seconds."""
    waited = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/schedstat") as stat:
                waited += int(stat.read().split()[1])
        except FileNotFoundError:
            pass  # it has ended, or this kernel does not say
    return waited / 1e9


def interface_counter(host, interface, name):
    return int(inside(host, "cat", f"/sys/class/net/{interface}/statistics/{name}"))
