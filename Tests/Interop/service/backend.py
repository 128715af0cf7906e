"""A running `kape backend`, and an app that talks to it."""
import base64
import hashlib
import http.client
import json
import os
import re
import secrets
import signal
import socket
import ssl
import subprocess
import urllib.parse

CLIENT = {"x-client-app-version": "1.0", "x-client-device-model": "desktop", "x-client-os": "linux", "x-client-os-version": "12", "x-sdk-version": "1"}
FORM = "application/x-www-form-urlencoded"


class Backend:
    """`kape backend` on a state folder, with a clock that can be moved on."""

    def __init__(self, program, state, settings=None, options=()):
        self.state = state
        self.log_path = state + ".log"
        self.log = open(self.log_path, "ab")
        command = [program, "backend", "--state", state, "--verbose", "--test-clock", *options]
        if settings is not None:
            path = state + ".settings.json"
            with open(path, "w") as file:
                json.dump(settings, file)
            command += ["--settings", path]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.advanced = 0
        self.said = []
        self.url = None
        for line in self.process.stdout:
            self.said.append(line)
            if match := re.match(r"listening on (\S+)", line):
                self.url = match[1]
                break
        if self.url is None:
            raise RuntimeError(f"it did not start: {''.join(self.said)} {open(self.log_path).read()}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.wait(20)
        self.process.stdout.close()
        self.log.close()
        return self.process.returncode

    def advance(self, seconds):
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(30)
            # The path may be longer than an address holds.
            folder = os.open(self.state, os.O_RDONLY)
            client.connect(f"/proc/self/fd/{folder}/control.sock")
            os.close(folder)
            client.sendall(b"advance %d\n" % seconds)
            answer = client.recv(100)
        if not answer.startswith(b"ok "):
            raise RuntimeError(answer)
        self.advanced += seconds
        return int(answer[3:])

    def credentials(self):
        with open(f"{self.state}/credentials.json") as file:
            return json.load(file)

    def verifier_key(self):
        with open(f"{self.state}/verifier.key") as file:
            return file.read().strip()


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def text(self):
        return self.body.decode()

    @property
    def redirected(self):
        query = urllib.parse.urlsplit(self.headers.get("location", "")).query
        return dict(urllib.parse.parse_qsl(query))


class App:
    """Calls operations by the names of the document and holds each answer against it. It remembers every secret."""

    REDIRECT = "http://127.0.0.1:54321/callback"

    def __init__(self, backend, document, secrets_seen):
        self.backend, self.document, self.secrets = backend, document, secrets_seen

    def secret(self, text):
        self.secrets.add(text)
        return text

    def raw(self, method, target, headers=None, body=None, url=None, context=None):
        parts = urllib.parse.urlsplit(url or self.backend.url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        extra = {"context": context} if parts.scheme == "https" else {}
        connection = kind(parts.hostname, parts.port, timeout=30, **extra)
        try:
            connection.request(method, target, body=body, headers=headers or {})
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def call(self, name, token=None, query=None, form=None, data=None, headers=None, body=None, kind=None, path=None, **where):
        method, target, _ = self.document.operations[name]
        target = (path or target) + ("?" + urllib.parse.urlencode(query) if query else "")
        fields = dict(headers or {})
        if token:
            fields["Authorization"] = "Bearer " + token
        sent = form if form is not None else data
        if form is not None:
            body, kind = urllib.parse.urlencode(form), kind or FORM
        elif data is not None:
            body, kind = json.dumps(data), kind or "application/json"
        if kind:
            fields["Content-Type"] = kind
        answer = self.raw(method, target, fields, body, **where)
        self.document.hold(name, answer.status, answer.headers, answer.body, sent)
        return answer

    # Signing in

    def form(self, **changes):
        self.verifier = self.secret(secrets.token_urlsafe(48))
        challenge = base64.urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).decode().rstrip("=")
        query = {
            "response_type": "code", "client_id": "app", "redirect_uri": self.REDIRECT, "scope": "openid profile email offline_access",
            "state": "a state", "nonce": "a nonce", "code_challenge": challenge, "code_challenge_method": "S256",
        }
        query.update(changes)
        answer = self.call("authorize", query={name: value for name, value in query.items() if value is not None})
        if answer.status != 200:
            return answer
        self.sealed = re.search(r'name="request" value="([^"]+)"', answer.text)[1]
        self.cookie = self.secret(answer.headers["set-cookie"].split(";")[0].split("=", 1)[1])
        return answer

    def send_form(self, email, password=None, action="sign_in", **more):
        password = self.backend.credentials()["passwords"].get(email, "none") if password is None else password
        form = {"request": self.sealed, "username": email, "password": self.secret(password), "action": action}
        return self.call("signIn", form=form, headers={"Cookie": f"kape_sign_in={self.cookie}"}, **more)

    def code(self, email):
        self.form()
        return self.secret(self.send_form(email).redirected["code"])

    def redeem(self, code, **changes):
        form = {"grant_type": "authorization_code", "client_id": "app", "code": code, "redirect_uri": self.REDIRECT, "code_verifier": self.verifier}
        form.update(changes)
        return self.remember(self.call("token", form=form))

    def remember(self, answer):
        if answer.status == 200:
            for name in ("access_token", "refresh_token", "id_token"):
                if name in answer.json:
                    self.secret(answer.json[name])
        return answer

    def sign_in(self, email):
        answer = self.redeem(self.code(email))
        assert answer.status == 200, answer.body
        return answer.json

    def refresh(self, token, **changes):
        form = {"grant_type": "refresh_token", "client_id": "app", "refresh_token": token}
        form.update(changes)
        return self.remember(self.call("token", form=form))

    def guest(self, secret=None):
        form = {"grant_type": "urn:kape:params:oauth:grant-type:guest", "client_id": "app", "guest_secret": self.secret(secret or secrets.token_urlsafe(32))}
        return self.remember(self.call("token", form=form))

    # Tokens

    def receipts(self, identity):
        answer = self.call("receipts", identity, headers=CLIENT)
        return [self.secret(receipt) for receipt in answer.json]

    def connection(self, receipt):
        return self.secret(self.call("connectionToken", receipt, headers=CLIENT).text)

    def connection_of(self, email):
        return self.connection(self.receipts(self.sign_in(email)["access_token"])[0])

    # Keys

    def add_key(self, token, key, server, **more):
        context = ssl.create_default_context(cafile=f"{self.backend.state}/ca.pem")
        query = {name: value for name, value in (("pubkey", key), ("pt", token)) if value is not None}
        answer = self.call("addKey", query=query, url=f"https://{server}", context=context, **more)
        if answer.status == 200:
            self.secret(answer.json["psk"])
        return answer
