"""Every operation and documented status, produced by a running backend and held against the document."""
import json
import sqlite3
import uuid

import jose
from backend import CLIENT
from harness import equal, test
from world import key

HUGE = "x" * 70_000
NOW = "2026-11-30T10:09:08.123Z"


def event(**changes):
    return {"id": str(uuid.uuid4()), "event": "connected", "category": "quality", "time": NOW, "properties": {"protocol": "wireguard"}, **changes}


def batch(*events, **changes):
    return {"project_token": "project", "distinct_id": "somebody", "events": list(events), **changes}


def statuses(body, *wanted):
    for status, call in wanted:
        equal(call().status, status, body)


@test("discovery and keys")
def discovery(world):
    found = world.app.call("discover").json
    equal(found["issuer"], world.backend.url)
    for name, operation in {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys", "revocation_endpoint": "revoke"}.items():
        equal(found[name], world.backend.url + world.document.operations[operation][1])
    keys = world.app.call("keys").json["keys"]
    equal(sorted(key["alg"] for key in keys), ["ES256", "RS256"])


@test("authorize: the form, what the app is told, and what nobody is told")
def authorize(world):
    app = world.app
    equal(app.form().status, 200)
    equal(app.form(code_challenge=None).redirected["error"], "invalid_request")
    equal(app.form(code_challenge_method="plain").status, 303)
    equal(app.form(redirect_uri="http://203.0.113.1/callback").status, 400)
    equal(app.form(client_id="nobody").status, 400)


@test("signIn: every status")
def sign_in(world):
    app = world.app
    world.rest()
    app.form()
    equal(app.send_form("free@example.com").status, 303)
    equal(app.send_form("free@example.com", action="deny").redirected["error"], "access_denied")
    equal(app.send_form("free@example.com", "wrong").status, 403)
    equal(app.call("signIn", form={"request": "none", "action": "sign_in"}).status, 400)
    equal(app.call("signIn", data={}).status, 415)
    equal(app.call("signIn", form={"request": HUGE}).status, 413)
    for _ in range(4):
        equal(app.send_form("free@example.com", "wrong").status, 403)
    refused = app.send_form("free@example.com")
    equal(refused.status, 429)
    world.rest(int(refused.headers["retry-after"]) - 1)
    equal(app.send_form("free@example.com").status, 429)
    world.rest(1)
    equal(app.send_form("free@example.com").status, 303, "after Retry-After")


@test("token: every grant, and every status but 503")
def token(world):
    app = world.app
    world.rest(300)
    code = app.code("paying@example.com")
    tokens = app.redeem(code).json
    keys = app.call("keys").json["keys"]
    equal(jose.verify(tokens["access_token"], keys)["client_id"], "app")
    claims = jose.verify(tokens["id_token"], keys)
    equal((claims["aud"], claims["nonce"], claims["email"]), ("app", "a nonce", "paying@example.com"))
    equal(app.refresh(tokens["refresh_token"]).status, 200)
    guest = app.guest()
    equal(guest.status, 200)
    assert "refresh_token" not in guest.json and jose.verify(guest.json["access_token"], keys)["is_guest"]
    equal(app.redeem(code).json["error"], "invalid_grant")
    equal(app.redeem(code, client_id="nobody").status, 401)
    equal(app.call("token", data={}).status, 415)
    equal(app.call("token", form={"a": HUGE}).status, 413)
    while (answer := app.refresh("none")).status != 429:
        equal(answer.json["error"], "invalid_grant")
    world.rest(int(answer.headers["retry-after"]))
    equal(app.refresh("none").status, 400, "after Retry-After")


@test("revoke: every status but 503")
def revoke(world):
    app = world.app
    world.rest()
    refresh = app.sign_in("paying@example.com")["refresh_token"]
    equal(app.call("revoke", form={"client_id": "app", "token": refresh}).body, b"")
    equal(app.refresh(refresh).json["error"], "invalid_grant")
    equal(app.call("revoke", form={"client_id": "app"}).status, 400)
    equal(app.call("revoke", form={"client_id": "nobody", "token": "x"}).status, 401)
    equal(app.call("revoke", data={}).status, 415)
    equal(app.call("revoke", form={"token": HUGE}).status, 413)
    while app.call("revoke", form={"client_id": "app", "token": "x"}).status == 200:
        pass
    equal(app.call("revoke", form={"client_id": "app", "token": "x"}).status, 429)


@test("subscriptions and receipts of each kind of user")
def subscriptions(world):
    app = world.app
    wanted = {
        "free@example.com": (["active"], 1), "paying@example.com": (["active"], 1), "several@example.com": (["active"] * 3, 3),
        "returning@example.com": (["expired", "cancelled"], 1), "none@example.com": ([], 0),
    }
    for email, (status, receipts) in wanted.items():
        world.rest()
        identity = app.sign_in(email)["access_token"]
        equal([one["status"] for one in app.call("subscriptions", identity).json["subscriptions"]], status, email)
        equal(len(app.receipts(identity)), receipts, email)
    guest = app.guest().json["access_token"]
    equal(app.call("subscriptions", guest).json, {"subscriptions": []})
    (receipt,) = app.receipts(guest)
    assert app.connection(receipt)
    for name, more in (("subscriptions", {}), ("receipts", {"headers": CLIENT})):
        equal(app.call(name, "none", **more).status, 401)
        while app.call(name, guest, **more).status == 200:
            pass
        equal(app.call(name, guest, **more).status, 429)
    equal(app.call("receipts", guest).status, 400)
    equal(app.call("receipts", guest, headers={**CLIENT, "x-client-os": "beos"}).status, 400)
    equal(app.call("receipts", guest, headers=CLIENT, body=HUGE).status, 413)


@test("connection tokens: anonymous, for the entitled, every status but 503")
def connection(world):
    app = world.app
    world.rest()
    identity = app.sign_in("paying@example.com")["access_token"]
    (receipt,) = app.receipts(identity)
    claims = jose.verify(app.connection(receipt), app.call("keys").json["keys"])
    text, mine = json.dumps(claims), jose.verify(receipt, app.call("keys").json["keys"])
    assert mine["sub"] not in text and mine["subscription_id"] not in text and "sub" not in claims
    equal(app.call("connectionToken", identity, headers=CLIENT).status, 401)
    equal(app.call("connectionToken", receipt).status, 400)
    equal(app.call("connectionToken", receipt, headers=CLIENT, body="{}").status, 400)
    equal(app.call("connectionToken", receipt, headers=CLIENT, body=HUGE).status, 413)
    storage = app.receipts(app.sign_in("storage@example.com")["access_token"])[0]
    equal(app.call("connectionToken", storage, headers=CLIENT).json["code"], "not_entitled")
    while app.call("connectionToken", receipt, headers=CLIENT).status == 200:
        pass
    equal(app.call("connectionToken", receipt, headers=CLIENT).status, 429)


@test("locations and endpoints: pecking order and filter, every status but 503")
def locations(world):
    app = world.app
    world.rest()
    tokens = app.sign_in("free@example.com")
    equal([one["id"] for one in app.call("locations", tokens["access_token"]).json["locations"]], ["here", "there"])
    equal(app.call("locations").status, 401)
    while app.call("locations", tokens["access_token"]).status == 200:
        pass
    connection = app.connection(app.receipts(tokens["access_token"])[0])

    def kinds(location="here", **query):
        answer = app.call("endpoints", connection, query=query, path=f"/vpn/v1/locations/{location}/endpoints")
        return [one["kind"] for one in answer.json["endpoints"]] if answer.status == 200 else answer.status

    equal(kinds(), ["wireguard", "openvpn", "wireguard", "lightway", "openvpn"])
    equal(kinds(protocols="openvpn,proxy"), ["openvpn", "openvpn", "proxy"])
    equal(kinds(protocols="wireguard"), ["wireguard", "wireguard"])
    equal(kinds("there"), [])
    equal(kinds("nowhere"), 404)
    equal(kinds(protocols="wireguard,"), 400)
    equal(app.call("endpoints", tokens["access_token"], path="/vpn/v1/locations/here/endpoints").status, 401)
    while kinds() != 429:
        pass


@test("dedicated IPs: every status but 503")
def dedicated(world):
    app = world.app
    world.rest()
    tokens = {ip: app.secret(token) for ip, token in world.backend.credentials()["dedicated_ips"].items()}
    connection = app.connection_of("paying@example.com")

    def ask(token, bearer=connection, **more):
        return app.call("dedicatedIP", bearer, data={"token": token}, **more)

    found = ask(tokens["192.0.2.9"])
    equal(found.json["ip"], "192.0.2.9")
    app.secret(found.json["access_token"])
    verified = app.call("verifyLightway", world.backend.verifier_key(), data={"token": found.json["access_token"]})
    equal(verified.json["dedicated_ip"], "192.0.2.9")
    equal(ask(tokens["192.0.2.10"]).status, 410)
    equal(ask(tokens["192.0.2.11"]).status, 409)
    equal(ask("' OR 1=1 --").status, 404)
    equal(ask("").status, 400)
    equal(ask("x", "none").status, 401)
    equal(ask("x", app.connection_of("free@example.com")).status, 403)
    equal(ask("x", kind="text/plain").status, 415)
    equal(ask(HUGE).status, 413)
    while ask("x").status == 404:
        pass
    equal(ask("x").status, 429)


@test("verification for OpenVPN and Lightway: every status")
def verification(world):
    app = world.app
    world.rest()
    verifier = app.secret(world.backend.verifier_key())
    connection = app.connection_of("free@example.com")
    for name, good, bad in (
        ("verifyOpenVPN", {"username": "jwt-auth", "password": connection}, {"username": "somebody", "password": connection}),
        ("verifyLightway", {"token": connection}, {"token": "none"}),
    ):
        equal(app.call(name, verifier, data=good).json["entitlements"], ["kape.vpn"])
        equal(app.call(name, verifier, data=bad).status, 403)
        equal(app.call(name, connection, data=good).status, 401)
        equal(app.call(name, verifier, data={**good, "more": 1}).status, 400)
        equal(app.call(name, verifier, body="{", kind="application/json").status, 400)
        equal(app.call(name, verifier, body="x", kind="text/plain").status, 415)
        equal(app.call(name, verifier, data={"token": HUGE}).status, 413)
    world.rest(7200)
    refused = app.call("verifyOpenVPN", verifier, data={"username": "jwt-auth", "password": connection})
    equal((refused.status, refused.json["code"]), (403, "expired_token"))


@test("tracking: taken once, kept for a while, every status but 503")
def tracking(world):
    app = world.app
    world.rest()
    events = [event() for _ in range(3)]
    equal(app.call("track", data=batch(*events)).json, {"accepted": 3})
    equal(app.call("track", data=batch(*events, event())).json, {"accepted": 1})
    equal(app.call("track", data=batch(event(), project_token="other")).status, 403)
    for wrong in (
        batch(), batch(*[event()] * 101), batch(event(time="yesterday")), batch(event(id="1")), batch(event(more=1)), batch(event(properties={"a": 1})),
    ):
        equal(app.call("track", data=wrong).status, 400)
    equal(app.call("track", body="[", kind="application/json").status, 400)
    equal(app.call("track", body="", kind="text/plain").status, 415)
    equal(app.call("track", data=batch(event(event=HUGE))).status, 413)
    world.rest()
    equal(app.call("track", data=batch(*[event() for _ in range(4)])).json, {"accepted": 4})
    world.rest()
    with sqlite3.connect(f"file:{world.state}/backend.db?mode=ro", uri=True) as database:
        equal(database.execute("SELECT count(*) FROM events").fetchone(), (5,), "no more than the settings say")
    while app.call("track", data=batch(event())).status == 202:
        pass
    equal(app.call("track", data=batch(event())).status, 429)


@test("addKey: every status")
def add_key(world):
    app = world.app
    world.rest()
    one, two = "10.98.1.2:1337", "10.98.1.2:1338"
    connection, mine = app.connection_of("paying@example.com"), key()
    equal(app.add_key(connection, mine, one).status, 200)
    equal(app.add_key(connection, "x", one).status, 400)
    equal(app.add_key(connection, None, one).status, 400)
    equal(app.add_key("none", mine, one).status, 401)
    equal(app.add_key(None, mine, one).status, 401)
    equal(app.add_key(connection, key(), one).status, 200)
    equal(app.add_key(connection, key(), one).status, 403, "the cap is 2")
    equal(app.add_key(app.connection_of("free@example.com"), mine, one).status, 409)
    equal(app.add_key(connection, key(), two).status, 503, "no such interface")
    while app.add_key(connection, "x", one).status == 400:
        pass
    equal(app.add_key(connection, mine, one).status, 429)


@test("a database that fails is told, and is found again")
def storage(world):
    app = world.app
    world.rest()
    tokens = app.sign_in("paying@example.com")
    identity = tokens["access_token"]
    receipt = app.receipts(identity)[0]
    connection = app.connection(receipt)
    app.form()
    world.rest()
    with sqlite3.connect(f"{world.state}/backend.db") as database:
        database.execute("PRAGMA legacy_alter_table = ON")
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")]
        for name in tables:
            database.execute(f"ALTER TABLE {name} RENAME TO gone_{name}")
    try:
        statuses("without tables", (503, lambda: app.send_form("paying@example.com")), (503, lambda: app.refresh(tokens["refresh_token"])),
            (503, lambda: app.call("revoke", form={"client_id": "app", "token": "x"})), (503, lambda: app.call("subscriptions", identity)),
            (503, lambda: app.call("receipts", identity, headers=CLIENT)), (503, lambda: app.call("connectionToken", receipt, headers=CLIENT)),
            (503, lambda: app.call("locations", identity)), (503, lambda: app.call("dedicatedIP", connection, data={"token": "x"})),
            (503, lambda: app.call("track", data=batch(event()))), (503, lambda: app.add_key(connection, key(), "10.98.1.2:1337")))
    finally:
        with sqlite3.connect(f"{world.state}/backend.db") as database:
            database.execute("PRAGMA legacy_alter_table = ON")
            for name in tables:
                database.execute(f"ALTER TABLE gone_{name} RENAME TO {name}")
    equal(app.refresh(tokens["refresh_token"]).status, 200)


@test("every operation and every documented status was produced")
def complete(world):
    equal(world.document.missing(), [])

