#!/usr/bin/env python3
"""kaped.py [--as UID] OPERATION [NAME=VALUE | NAME:=JSON]...: asks kaped ($KAPE_RUN_DIR/kaped.sock) one thing and prints what it answers.

--as UID       becomes that user (and group) first, without any other group
--raw HEX      sends these bytes instead of a request, and prints what comes back until the connection ends
--watch COUNT  after the answer prints so many pushed messages, one a line
words=TEXT     of tunnel.start: goes to the provider as its option of that name
message=TEXT   of tunnel.message: as the data; the answer's data is printed as text
Exit status: 0 answered, 1 refused (the code and the message are printed), 2 usage.
"""

import base64
import json
import os
import plistlib
import socket
import sys


def receive(connection, size):
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def read(connection):
    size = int.from_bytes(receive(connection, 4), "big")
    return json.loads(receive(connection, size))


def main():
    arguments = sys.argv[1:]
    watched, raw = 0, None
    while arguments and arguments[0].startswith("--"):
        option, value = arguments[0], arguments[1]
        arguments = arguments[2:]
        if option == "--as":
            os.setgroups([])
            os.setresgid(int(value), int(value), int(value))
            os.setresuid(int(value), int(value), int(value))
        elif option == "--watch":
            watched = int(value)
        elif option == "--raw":
            raw = bytes.fromhex(value)
        else:
            sys.exit(2)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(30)
    connection.connect(os.environ.get("KAPE_RUN_DIR", "/run/kape") + "/kaped.sock")
    if raw is not None:
        connection.sendall(raw)
        connection.shutdown(socket.SHUT_WR)
        try:
            while True:
                print(json.dumps(read(connection)))
        except EOFError:
            return 0
    request = {"v": 1, "id": 7, "op": arguments[0]}
    for argument in arguments[1:]:
        name, _, value = argument.partition("=")
        if name.endswith(":"):
            request[name[:-1]] = json.loads(value)
        elif name == "words":
            request["options"] = base64.b64encode(plistlib.dumps({"words": value}, fmt=plistlib.FMT_BINARY)).decode()
        elif name == "message":
            request["data"] = base64.b64encode(value.encode()).decode()
        else:
            request[name] = value
    body = json.dumps(request).encode()
    connection.sendall(len(body).to_bytes(4, "big") + body)
    pushed = []
    while True:
        answer = read(connection)
        if "op" in answer:
            pushed.append(answer)
            continue
        break
    if "error" in answer:
        print(answer["error"]["code"] + ": " + answer["error"]["message"])
        return 1
    answer = answer["ok"]
    if arguments[0] == "tunnel.message":
        print(base64.b64decode(answer["data"]).decode() if answer["data"] is not None else "(none)")
    else:
        print(json.dumps(answer))
    for index in range(watched):
        print(json.dumps(pushed[index] if index < len(pushed) else read(connection)), flush=True)
    return 0


sys.exit(main())
