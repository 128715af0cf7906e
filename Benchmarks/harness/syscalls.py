"""Counts the system calls of processes while something runs (native/syscalls.c)."""
import json
import subprocess

from .native import native


def during(pids, action):
    """The calls of each process while `action` runs, and what it returned; None for the calls where they cannot be
    counted."""
    counter = subprocess.Popen([native("syscalls"), *map(str, pids)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    counts = counter.stdout.readline().strip() == "counting"
    try:
        result = action()
    finally:
        output, _ = counter.communicate()
    return (json.loads(output) if counts else None), result
