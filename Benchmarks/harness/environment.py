"""What a result belongs to: machine, kernel, versions, options."""
import os
import platform
import subprocess
import time

from .tunnels import TOP


def first_line(*command):
    try:
        result = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        return "missing"
    return (result.stdout.splitlines() or [""])[0].strip()


def from_file(path, key):
    with open(path) as file:
        return next((line.split(":", 1)[1].strip() for line in file if line.startswith(key)), "unknown")


def machine():
    return {
        "kernel": platform.release(),
        "cpu": from_file("/proc/cpuinfo", "model name"),
        "cores": os.cpu_count(),
        "memory": from_file("/proc/meminfo", "MemTotal"),
        "load before": os.getloadavg()[0],
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": first_line("git", "-C", TOP, "describe", "--always", "--dirty"),
    }


def tools():
    return {
        "iperf3": first_line("iperf3", "--version"),
        "OpenSSL": first_line("openssl", "version"),
        "libsodium": first_line("dpkg-query", "-W", "-f", "${Version}", "libsodium23"),
        "intel-ipsec-mb": first_line("dpkg-query", "-W", "-f", "${Version}", "libipsec-mb1"),
        "compiler": first_line("clang", "--version"),
    }
