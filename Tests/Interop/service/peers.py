"""Peers on a real interface: they come, carry traffic, make room, expire, and outlive whatever restarts."""
from harness import equal, test
from world import key, until

HERE = "10.98.1.2:1337"


def add(world, connection, mine):
    answer = world.app.add_key(connection, mine, HERE)
    assert answer.status == 200, answer.body
    return answer.json


def replacing(world, **changes):
    """Who comes last stays; nobody is there yet."""
    peers = {"cap": 2, "at_cap": "replace", "interval": "1 s", **changes}
    if world.settings["peers"] != peers:
        world.restart(peers=peers)
    world.rest(3600)
    equal(world.server.peers(), {})


@test("a peer carries traffic until its lifetime is over, and not a second longer")
def lifetime(world):
    replacing(world)
    client = world.client
    got = add(world, world.app.connection_of("free@example.com"), client.public)
    equal((got["server_key"], got["server_vip"], got["dns_servers"]), (world.server.public, "10.99.0.1", ["10.99.0.1"]))
    equal(world.server.peers(), {client.public: got["peer_ip"] + "/32"})
    client.start(got["peer_ip"] + "/29")
    endpoint = f"{got['server_ip']}:{got['server_port']}"
    client.run("wg", "set", "kbe1", "peer", got["server_key"], "preshared-key", "/dev/stdin", "endpoint", endpoint,
        "allowed-ips", "10.99.0.0/29", text=got["psk"])
    assert client.reaches(got["server_vip"], 10)
    world.backend.advance(got["expires_in"] - 1)
    assert client.reaches(got["server_vip"])
    world.backend.advance(1)
    equal(world.server.peers(), {})
    assert not client.reaches(got["server_vip"], 1)
    equal(world.sql("SELECT count(*) FROM peers"), [(0,)])


@test("a key that comes again keeps its address and begins anew; its address is not the next one's")
def renewal(world):
    replacing(world)
    mine = key()
    first = add(world, world.app.connection_of("free@example.com"), mine)
    world.backend.advance(3599)
    again = add(world, world.app.connection_of("free@example.com"), mine)
    equal(again["peer_ip"], first["peer_ip"])
    assert again["psk"] != first["psk"]
    world.backend.advance(3599)
    equal(list(world.server.peers()), [mine])
    world.backend.advance(1)
    equal(world.server.peers(), {})
    assert add(world, world.app.connection_of("free@example.com"), key())["peer_ip"] != first["peer_ip"]


@test("at the cap whoever was longest unused makes room, on whichever token")
def cap(world):
    replacing(world)
    first, second, third = key(), key(), key()
    for mine in (first, second, third):
        got = add(world, world.app.connection_of("free@example.com"), mine)
        world.backend.advance(10)
    equal(set(world.server.peers()), {second, third})
    equal(world.sql("SELECT count(*) FROM peers"), [(2,)])
    world.backend.advance(got["expires_in"] - 20)
    equal(set(world.server.peers()), {third})


@test("a cap holds across two periods of pseudonyms")
def pseudonyms(world):
    replacing(world)
    now = world.backend.advance(0)
    world.backend.advance(7200 - now % 7200 - 60)
    old = world.app.connection_of("free@example.com")
    first, second, third, fourth = key(), key(), key(), key()
    add(world, old, first)
    world.backend.advance(61)
    new = world.app.connection_of("free@example.com")
    add(world, new, second)
    world.backend.advance(10)
    add(world, new, third)
    equal(set(world.server.peers()), {second, third})
    world.backend.advance(10)
    add(world, old, fourth)
    equal(set(world.server.peers()), {third, fourth})


@test("when all addresses are in use, that is told")
def full(world):
    replacing(world)
    for email in ("free@example.com", "several@example.com"):
        connection = world.app.connection_of(email)
        for _ in range(2):
            add(world, connection, key())
    connection = world.app.connection_of("paying@example.com")
    add(world, connection, key())
    equal(len(world.server.peers()), 5)
    refused = world.app.add_key(connection, key(), HERE)
    equal(refused.status, 503)
    assert "in use" in refused.json["message"]
    equal(len(world.server.peers()), 5)


@test("an interface that was started anew gets its peers back; those of others are let be")
def put_back(world):
    replacing(world)
    mine, other = key(), key()
    world.server.run("wg", "set", "kbe0", "peer", other, "allowed-ips", "192.0.2.7/32")
    got = add(world, world.app.connection_of("free@example.com"), mine)
    wanted = {mine: got["peer_ip"] + "/32", other: "192.0.2.7/32"}
    equal(world.server.peers(), wanted)
    world.server.stop()
    equal(world.app.add_key(world.app.connection_of("free@example.com"), key(), HERE).status, 503)
    world.server.start("10.99.0.1/29", 51820)
    del wanted[other]
    until(lambda: world.server.peers() == wanted)
    world.server.run("wg", "set", "kbe0", "peer", other, "allowed-ips", "192.0.2.7/32")
    world.server.stop()
    world.backend.advance(3600)
    world.server.start("10.99.0.1/29", 51820)
    until(lambda: world.sql("SELECT count(*) FROM peers") == [(0,)])
    equal(world.server.peers(), {})


@test("a killed backend finds its peers, and takes them off when their time has come")
def killed(world):
    replacing(world)
    mine = key()
    got = add(world, world.app.connection_of("free@example.com"), mine)
    world.restart(9)
    equal(world.server.peers(), {mine: got["peer_ip"] + "/32"})
    world.backend.advance(3600)
    equal(world.server.peers(), {})
