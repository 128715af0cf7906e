#!/usr/bin/env python3
"""name_server.py ADDRESS ZONE LOG: answers A and AAAA questions over UDP from ZONE (lines "NAME ADDRESS", read for each question; "NAME -" is
not answered at all) and writes "NAME TYPE FROM" to LOG for each."""
import ipaddress
import socket
import struct
import sys

address, zone, log = sys.argv[1:]
sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
sock.bind((address, 53))
while True:
    question, sender = sock.recvfrom(4096)
    labels, at = [], 12
    while question[at]:
        labels.append(question[at + 1 : at + 1 + question[at]].decode())
        at += 1 + question[at]
    name, kind = ".".join(labels).lower(), struct.unpack("!H", question[at + 1 : at + 3])[0]
    with open(log, "a") as lines:
        lines.write(f"{name} {kind} {sender[0]}\n")
    with open(zone) as lines:
        found = [line.split()[1] for line in lines if line.split()[:1] == [name]]
    if "-" in found:
        continue
    records = [ipaddress.ip_address(text) for text in found]
    records = [record for record in records if record.version == {1: 4, 28: 6}.get(kind)]
    answer = question[:2] + struct.pack("!HHHHH", 0x8180 if found else 0x8183, 1, len(records), 0, 0) + question[12 : at + 5]
    for record in records:
        answer += struct.pack("!HHHIH", 0xC00C, kind, 1, 1, len(record.packed)) + record.packed
    sock.sendto(answer, sender)
