"""Tests that print a line each, in the form of the shell tests beside them."""
import sys
import traceback

TESTS = []


def test(name):
    def note(body):
        TESTS.append((name, body))
        return body
    return note


def run(world):
    failed = 0
    for name, body in TESTS:
        try:
            body(world)
            print(f"ok    {name}", flush=True)
        except Exception:
            failed += 1
            print(f"FAIL  {name}", flush=True)
            print("\n".join("        " + line for line in traceback.format_exc().splitlines()[-12:]), flush=True)
    sys.exit(1 if failed else 0)


def equal(got, wanted, what=""):
    assert got == wanted, f"{what}: got {got!r}, wanted {wanted!r}"
