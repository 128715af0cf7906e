"""What the tests of the backend work with: settings, a running backend, and an app."""
import contextlib
import os
import sqlite3
import subprocess
import time

from backend import App, Backend
from openapi import Document

KINDS = [
    {"kind": "wireguard", "server": "one"},
    {"kind": "openvpn", "at": "192.0.2.1:1194", "transport": "tcp", "cert_dn": "one", "xor_value": 90},
    {"kind": "wireguard", "server": "two"},
    {"kind": "lightway", "at": "192.0.2.1:443", "cert_dn": "one"},
    {"kind": "openvpn", "at": "192.0.2.1:1194", "cert_dn": "one"},
    {"kind": "proxy", "at": "192.0.2.1:8443", "cert_dn": "one"},
]
LIGHTWAY = [{"kind": "lightway", "at": "192.0.2.9:443", "cert_dn": "nine"}]
OPERATIONS = "signIn token revoke subscriptions receipts connectionToken locations endpoints dedicatedIP addKey track".split()


def user(email, *subscriptions):
    return {"email": email, "subscriptions": list(subscriptions)}


VPN = ["kape.vpn"]
BOTH = ["kape.vpn", "kape.dedicated_ip"]


def settings(at_cap="refuse", **changes):
    """Small limits and lifetimes that a test reaches, and all that there can be."""
    location = {"id": "here", "name": "Here", "country_code": "NL", "continent": "Europe", "latitude": 52.4, "longitude": 4.9}
    server = {"ip": "10.98.1.2", "port": 51820, "dns_servers": ["10.99.0.1"]}
    made = {
        "listen": "127.0.0.1:0",
        "clients": [{"id": "app", "redirect_uris": ["http://127.0.0.1/callback"]}, {"id": "other", "redirect_uris": ["other:/back"]}],
        "limits": {name: {"requests": 12, "per": "60 s"} for name in OPERATIONS + ["guests"]},
        "lifetimes": {"peer": "1 h", "connection_token": "2 h", "holder": "2 h"},
        "peers": {"cap": 2, "at_cap": at_cap, "interval": "1 s"},
        "tracking": {"project_tokens": ["project"], "kept": "1 d", "most": 5},
        "users": [
            user("free@example.com", {"tier": "free", "entitlements": VPN}),
            user("paying@example.com", {"term_ends_in": "30 d", "billing_period": {"unit": "month", "count": 1}, "entitlements": BOTH}),
            user("several@example.com", {"term_ends_in": "7 d", "entitlements": VPN}, {"term_ends_in": "90 d", "entitlements": BOTH}, {"entitlements": ["kape.storage"]}),
            user("returning@example.com", {"status": "expired", "term_ends_in": "-400 d", "entitlements": VPN}, {"status": "cancelled", "term_ends_in": "10 d", "cancelled_in": "-1 d", "entitlements": VPN}),
            user("storage@example.com", {"entitlements": ["kape.storage"]}),
            user("none@example.com"),
        ],
        "locations": [{**location, "endpoints": KINDS}, {**location, "id": "there", "country_code": "SE", "endpoints": []}],
        "servers": [
            {**server, "name": "one", "interface": "kbe0", "auth": "10.98.1.2:1337", "address": "10.99.0.1/29"},
            {**server, "name": "two", "interface": "kbe-none", "auth": "10.98.1.2:1338", "address": "10.99.1.1/24"},
        ],
        "dedicated_ips": [
            {"ip": "192.0.2.9", "location": "here", "ends_in": "30 d", "endpoints": LIGHTWAY},
            {"ip": "192.0.2.10", "location": "here", "ends_in": "-1 d", "endpoints": LIGHTWAY},
            {"ip": "192.0.2.11", "location": "here", "ends_in": "30 d", "under_maintenance": True, "endpoints": LIGHTWAY},
        ],
    }
    made.update(changes)
    return made


class World:
    def __init__(self, program, document, folder, **changes):
        self.server, self.client = Interface("kbe0"), Interface("kbe1", os.environ["CLIENT_NAMESPACE"])
        self.server.start("10.99.0.1/29", 51820)
        self.program, self.state = program, os.path.join(folder, "state")
        self.document = Document(document)
        self.secrets = set()
        self.settings = settings(**changes)
        self.advanced = 0
        self.start()

    def start(self):
        self.backend = Backend(self.program, self.state, self.settings)
        self.app = App(self.backend, self.document, self.secrets)
        # A new process begins with the system's time.
        self.backend.advance(self.advanced)

    def stop(self):
        self.backend.stop()
        self.client.stop()
        self.server.stop()

    def end(self, number=15):
        self.backend.stop(number)
        self.advanced = self.backend.advanced

    def restart(self, number=15, **changes):
        self.end(number)
        self.settings.update(changes)
        self.start()

    def sql(self, text, *values):
        with contextlib.closing(sqlite3.connect(f"file:{self.state}/backend.db?mode=ro", uri=True)) as database:
            return database.execute(text, values).fetchall()

    def rest(self, seconds=61):
        """Lets the limits recover."""
        return self.backend.advance(seconds)


def run(*words, text=None, check=True, timeout=60):
    return subprocess.run(words, input=text, capture_output=True, text=True, check=check, timeout=timeout)


def wg(*words, text=None):
    return run("wg", *words, text=text).stdout.strip()


def pair():
    private = wg("genkey")
    return private, wg("pubkey", text=private)


def key():
    return pair()[1]


class Interface:
    """`kape wg`, as the server kbe0 in this namespace or as the client's kbe1 in another."""

    def __init__(self, name, namespace=None):
        self.name = name
        self.within = ["ip", "netns", "exec", namespace] if namespace else []
        self.private, self.public = pair()

    def run(self, *words, **more):
        return run(*self.within, *words, **more)

    def start(self, address, port=0):
        self.run(os.environ["KAPE_WG"], self.name)
        self.run("wg", "set", self.name, "listen-port", str(port), "private-key", "/dev/stdin", text=self.private)
        self.run("ip", "addr", "replace", address, "dev", self.name)
        self.run("ip", "link", "set", self.name, "up")

    def stop(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"/var/run/wireguard/{self.name}.sock")
        until(lambda: self.run("ip", "link", "show", self.name, check=False).returncode != 0)

    def peers(self):
        """Their keys, with their allowed IPs."""
        lines = self.run("wg", "show", self.name, "allowed-ips").stdout.splitlines()
        return dict(line.split("\t") for line in lines)

    def reaches(self, address, seconds=3):
        return self.run("ping", "-q", "-c", "1", "-W", str(seconds), address, check=False).returncode == 0


def until(body, seconds=20):
    """Waits for what comes by itself, and fails loudly when it does not."""
    end = time.monotonic() + seconds
    while not body():
        if time.monotonic() > end:
            raise TimeoutError("it did not come about")
        time.sleep(0.05)
