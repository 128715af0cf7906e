"""`kill -9` at any moment: nothing that was answered is lost, and nothing is half done."""
import http.client
import json
import os
import random
import subprocess
import threading
import time

from backend import App, Backend
from harness import equal, test


@test("killed while tokens are refreshed: the last token that arrived, or the one before it, works at once")
def refreshing(world):
    seed = random.randrange(1 << 32)
    generator = random.Random(seed)
    world.rest()
    token = world.app.sign_in("paying@example.com")["refresh_token"]
    arrived = 0
    for _ in range(6):
        killer = threading.Thread(target=lambda pause=generator.uniform(0, 0.03): (time.sleep(pause), world.backend.process.kill()))
        world.rest()
        killer.start()
        try:
            while True:
                answer = world.app.refresh(token)
                if answer.status == 429:
                    break
                equal(answer.status, 200, f"seed {seed}")
                token, arrived = answer.json["refresh_token"], arrived + 1
        except (ConnectionError, http.client.HTTPException):
            pass
        killer.join()
        world.restart(9)
        answer = world.app.refresh(token)
        equal(answer.status, 200, f"seed {seed}")
        token = answer.json["refresh_token"]
    assert arrived > 0, f"seed {seed}: no refresh came through"
    equal(world.sql("PRAGMA integrity_check"), [("ok",)])
    equal(world.sql("SELECT count(*) FROM families WHERE revoked AND id = (SELECT family FROM refresh_tokens ORDER BY rowid DESC)"), [(0,)])


@test("a second start finds users, keys and tokens, and makes nothing anew")
def second_start(world):
    world.rest()
    tokens = world.app.sign_in("paying@example.com")
    keys, credentials = world.app.call("keys").json, world.backend.credentials()
    world.restart()
    assert not any("password" in line for line in world.backend.said), world.backend.said
    equal(world.backend.credentials(), credentials)
    equal({key["kid"] for key in world.app.call("keys").json["keys"]}, {key["kid"] for key in keys["keys"]})
    # The port is another one, and with it the issuer: what was signed for the old one is not taken.
    equal(world.app.call("subscriptions", tokens["access_token"]).status, 401)
    equal(world.app.refresh(tokens["refresh_token"]).status, 200)


@test("killed in its very first start, it goes on where it was")
def first_start(world):
    folder = world.state + "-first"
    settings = folder + ".settings.json"
    with open(settings, "w") as file:
        json.dump(world.settings, file)
    command = [world.program, "backend", "--state", folder, "--settings", settings]
    for pause in (0.05, 0.1, 0.2, 0.3, 0.4):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(pause)
        process.kill()
        process.wait()
    world.end()
    try:
        # Servers listen at the same addresses as the other backend's.
        with Backend(world.program, folder, world.settings) as backend:
            passwords = backend.credentials()["passwords"]
            equal(sorted(passwords), sorted(user["email"] for user in world.settings["users"]))
            app = App(backend, world.document, world.secrets)
            app.sign_in("free@example.com")
            equal(os.stat(folder + "/credentials.json").st_mode & 0o777, 0o600)
    finally:
        world.start()
