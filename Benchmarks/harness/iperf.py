"""iperf3 between the hosts."""
import json

from .hosts import inside, succeeds, within


# The same everywhere, whatever a machine's default is: where that paces (bbr), the timers of the sender's TCP interrupt the tunnels.
congestion = "cubic"


def paced():
    """The congestion control of a stream that others are measured beside: one that paces, where the kernel has it, since it fills no queue of
    its own making up to the brim."""
    with open("/proc/sys/net/ipv4/tcp_available_congestion_control") as names:
        return "bbr" if "bbr" in names.read().split() else congestion


def command(seconds, *options, address="10.77.0.2", control=None):
    """A client's command line."""
    tcp = () if "-u" in options else ("-C", control or congestion)
    return ("iperf3", "-c", address, "-t", f"{seconds:g}", *tcp, *options)


def listening(host, *ports):
    """Whether something listens on each of the ports, TCP or UDP."""
    return all(succeeds(host, "sh", "-c", f"ss -ltun | grep -q ':{port} '") for port in ports)


class Server:
    """An iperf3 server in host b."""

    def __init__(self, hosts):
        self.hosts = hosts

    def __enter__(self):
        self.process = self.hosts.start(self.hosts.b, "iperf3", "-s")
        if not within(5, lambda: listening(self.hosts.b, 5201)):
            raise RuntimeError("iperf3 did not start")
        return self

    def __exit__(self, *_):
        self.hosts.end(self.process)


def received(report, udp_size=None):
    """Bytes that arrived and the seconds they took, from iperf3's JSON."""
    end = report["end"]
    if udp_size:
        total = end["sum"]
        return (total["packets"] - total.get("lost_packets", 0)) * udp_size, total["seconds"]
    return end["sum_received"]["bytes"], end["sum_received"]["seconds"]


def client(hosts, seconds, options=(), address="10.77.0.2"):
    """Runs a client in host a to its end: bytes that arrived, and seconds."""
    report = json.loads(inside(hosts.a, *command(seconds, "-J", *options, address=address)))
    udp_size = int(options[options.index("-l") + 1]) if "-u" in options else None
    return received(report, udp_size)
