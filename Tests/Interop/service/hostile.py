"""Bad input, wrong use, and what must not be seen."""
import glob
import os
import random
import socket
import subprocess
import urllib.parse

from harness import equal, test
from world import key, run

SQL = ["' OR '1'='1", "'; DROP TABLE users; --", "\" OR \"\"=\"", "x' UNION SELECT password_hash FROM users --", "%' --", "\\'; --"]


def alive(world):
    equal(world.app.call("discover").status, 200)


@test("text that means something to SQL is text")
def sql(world):
    app = world.app
    users = world.sql("SELECT count(*) FROM users")
    for text in SQL:
        world.rest()
        app.form()
        equal(app.send_form(text, text).status, 403)
        equal(app.redeem(text).status, 400)
        equal(app.refresh(text).status, 400)
        equal(app.call("revoke", form={"client_id": "app", "token": text}).status, 200)
        equal(app.call("subscriptions", urllib.parse.quote(text)).status, 401)
        equal(app.call("endpoints", "none", path="/vpn/v1/locations/" + urllib.parse.quote(text, safe="") + "/endpoints").status, 401)
    equal(world.sql("SELECT count(*) FROM users"), users)
    world.rest(300)


@test("bodies that are huge, announced or not, are refused and not kept")
def huge(world):
    app = world.app
    before = int(open(f"/proc/{world.backend.process.pid}/statm").read().split()[1])
    for size in (70_000, 1_000_000):
        equal(app.call("token", body="a=" + "x" * size, kind="application/x-www-form-urlencoded").status, 413)
    parts = urllib.parse.urlsplit(world.backend.url)
    with socket.create_connection((parts.hostname, parts.port), 30) as client:
        client.sendall(b"POST /oauth2/token HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000000\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 413 ")
    with socket.create_connection((parts.hostname, parts.port), 30) as client:
        client.sendall(b"POST /oauth2/token HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            for _ in range(400):
                client.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
            assert not client.recv(100), "25 MB were taken"
        except ConnectionError:
            pass
    after = int(open(f"/proc/{world.backend.process.pid}/statm").read().split()[1])
    assert after - before < 4096, f"{(after - before) * 4} KiB more"
    alive(world)


@test("requests that are none, and what a thousand random ones are answered")
def random_requests(world):
    app = world.app
    parts = urllib.parse.urlsplit(world.backend.url)
    for text in (b"\x00\x01\x02\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET /" + b"a" * 100_000, b"GET / HTTP/1.1\r\nX: " + b"a" * 100_000 + b"\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\n"):
        with socket.create_connection((parts.hostname, parts.port), 30) as client:
            try:
                client.sendall(text)
                client.shutdown(socket.SHUT_WR)
                client.recv(1000)
            except OSError:
                pass
    seed = random.randrange(1 << 32)
    generator = random.Random(seed)
    paths = [path for _, path, _ in world.document.operations.values()]
    bodies = ["", "{", "[" * 5000, "{\"a\":" * 100, "null", "\ud800".encode("utf-8", "surrogatepass"), b"\xff\xfe", "a=%", "a=%00", "=&=&&", "a=b&a=b", "{}", "[]", "1e999"]
    kinds = ["application/json", "application/x-www-form-urlencoded", "text/plain", "", "application/json; charset=x"]
    seen = {}
    for _ in range(1000):
        method = generator.choice(["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "BREW"])
        path = generator.choice(paths + ["/", "//", "/%00", "/%zz", "/..", "/vpn/v1/locations//endpoints"]) + generator.choice(["", "?", "?a=%zz", "?a=%00", "?client_id=app&client_id=app", "?" + "a=b&" * 200])
        headers = {"Authorization": generator.choice(["", "Bearer", "Bearer ", "Bearer a.b.c", "Basic YTpi", "a b", "x" * 9000]), "Content-Type": generator.choice(kinds), "Cookie": generator.choice(["", "=;=", "kape_sign_in=x"])}
        answer = app.raw(method, path.replace("{location_id}", "here"), headers, generator.choice(bodies))
        seen[answer.status] = seen.get(answer.status, 0) + 1
        assert answer.status in (200, 303, 400, 401, 403, 404, 405, 413, 415, 429), f"seed {seed}: {method} {path}: {answer.status}"
    assert len(seen) >= 6, seen
    world.rest(300)
    alive(world)


@test("curl signs in and exchanges a key; a certificate of another name or CA is refused")
def curl(world):
    world.rest(3600)
    jar, state = world.state + ".cookies", world.state
    challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"  # RFC 7636, appendix B
    query = urllib.parse.urlencode({"response_type": "code", "client_id": "app", "redirect_uri": "http://127.0.0.1:9/callback", "scope": "openid", "code_challenge": challenge, "code_challenge_method": "S256"})
    page = run("curl", "-sSf", "-c", jar, f"{world.backend.url}/oauth2/authorize?{query}").stdout
    sealed = page.split('name="request" value="')[1].split('"')[0]
    password = world.backend.credentials()["passwords"]["free@example.com"]
    redirect = run("curl", "-sS", "-b", jar, "-o", "/dev/null", "-w", "%{redirect_url}", "--data-urlencode", f"request={sealed}", "--data-urlencode", "username=free@example.com",
        "--data-urlencode", f"password={password}", "-d", "action=sign_in", f"{world.backend.url}/oauth2/authorize").stdout
    code = urllib.parse.parse_qs(urllib.parse.urlsplit(redirect).query)["code"][0]
    tokens = run("curl", "-sSf", "-d", f"grant_type=authorization_code&client_id=app&code={code}&redirect_uri=http%3A%2F%2F127.0.0.1%3A9%2Fcallback"
        "&code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", f"{world.backend.url}/oauth2/token").stdout
    assert '"access_token"' in tokens
    connection, mine = world.app.connection_of("free@example.com"), key()

    def exchange(name, ca):
        return run("curl", "-sS", "--cacert", ca, "--connect-to", f"{name}:1337:10.98.1.2:1337", "-G", "--data-urlencode", f"pubkey={mine}", "--data-urlencode", f"pt={connection}",
            f"https://{name}:1337/addKey", check=False)

    assert '"status":"OK"' in exchange("one", f"{state}/ca.pem").stdout
    assert exchange("two", f"{state}/ca.pem").returncode == 60
    assert exchange("one", "/etc/ssl/certs/ca-certificates.crt").returncode in (60, 77)
    said = subprocess.run(["curl", "-sSv", "--cacert", f"{state}/ca.pem", "--connect-to", "one:1337:10.98.1.2:1337", "https://one:1337/"], capture_output=True, text=True, check=False)
    assert "subject: CN=one" in said.stderr and "SSL connection using TLSv1.3" in said.stderr, said.stderr
    assert subprocess.run(["curl", "-sS", "--tls-max", "1.1", "-k", "https://10.98.1.2:1337/"], capture_output=True, check=False).returncode == 35


@test("wrong use is refused with what to do instead, and the right exit status")
def wrong_use(world):
    def refused(status, words, *options, path=None):
        done = run(path or world.program, "backend", *options, check=False, timeout=30)
        equal(done.returncode, status, done.stderr)
        assert words in done.stderr, done.stderr

    other = world.state + "-other"
    refused(2, "tls", "--state", other, "--listen", "0.0.0.0:0")
    refused(2, "no such file", "--state", other, "--settings", "/nowhere")
    refused(2, "did you mean '--state'", "--stat", "x")
    refused(4, "in use", "--state", world.state)
    os.mkdir(other + "-open")
    os.chmod(other + "-open", 0o755)
    refused(1, "chmod 700", "--state", other + "-open")
    wrong = other + ".json"
    with open(wrong, "w") as file:
        file.write('{"listn": "x", "users": [{"email": "nobody"}], "lifetimes": {"code": "1 year"}}')
    for words in ("listn: unknown; did you mean listen?", "users[0].email", "lifetimes.code"):
        refused(2, words, "--check", wrong)
    with open(wrong, "w") as file:
        file.write('{\n  "listen": }')
    refused(2, "line 2, column 13", "--check", wrong)
    lone = other + "-kape"
    os.link(os.path.realpath(world.program), lone) if os.stat(world.program).st_dev == os.stat(os.path.dirname(lone)).st_dev else run("cp", world.program, lone)
    refused(3, "kape-control belongs beside kape", path=lone)
    assert "usage: kape backend" in run(world.program, "backend", "--help").stdout


@test("no token, key or password is in the log, nor in the database but as a hash")
def nothing_to_see(world):
    logs = b"".join(open(path, "rb").read() for path in glob.glob(world.state + "*.log"))
    assert logs.count(b"event=request") > 50, "there is a log"
    stored = b"".join(open(path, "rb").read() for path in glob.glob(world.state + "/backend.db*"))
    secrets = {secret for secret in world.secrets if len(secret) >= 8}
    assert len(secrets) > 100
    for secret in secrets:
        assert secret.encode() not in logs, f"{secret} is in the log"
        assert secret.encode() not in stored, f"{secret} is in the database"
    for email in world.backend.credentials()["passwords"]:
        assert email.encode() not in logs
