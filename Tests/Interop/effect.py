#!/usr/bin/env python3
"""effect.py INTERFACE: makes what ip, nft, sysctl and wg print of a tunnel comparable between two programs.

Interface indexes, the random link-local address of a TUN and the names of nftables tables and chains say nothing about
what happens to packets; everything else stays, one item a line."""
import json
import re
import sys

NAMES = {"preraw": "guard", "premangle": "restore-mark", "postmangle": "keep-mark", f"wg-quick-{sys.argv[1]}": f"kape-{sys.argv[1]}"}


def is_random(item):
    """Of the link-local address that the kernel makes up for each interface."""
    if item.get("dev") != sys.argv[1] and "local" not in item:
        return False
    text = json.dumps(item)
    return item.get("scope") == "link" and "fe80:" in text or re.match("fe80:", item.get("dst", "")) is not None and item["dst"] != "fe80::/64"


for line in sys.stdin:
    line = line.rstrip("\n")
    if not line.startswith("["):
        line = re.sub(r"[\w-]+", lambda word: NAMES.get(word.group(), word.group()), line)
        print(re.sub(r"daddr fe80:[0-9a-f:]+", "daddr LINK-LOCAL", line))
        continue
    for item in json.loads(line):
        for name in ("ifindex", "link_index", "link_netnsid"):
            item.pop(name, None)
        if "addr_info" in item:
            item["addr_info"] = [address for address in item["addr_info"] if not is_random(address)]
        if not is_random(item):
            print(json.dumps(item, sort_keys=True))
