"""choose.py BINARY CANDIDATES CORPUS FILE...: copies into CORPUS the few candidates that together run every region of
the FILEs that all of them run, and a few more. BINARY is the target's counting build. Inputs of the corpus that a person
named are left alone; those that libFuzzer named (by their hash) are replaced."""
import json
import os
import re
import shutil
import subprocess
import sys

MOST_FILES, MOST_BYTES = 36, 20_000


def regions(binary, path, files):
    profile = binary + ".one.profraw"
    environment = dict(os.environ, LLVM_PROFILE_FILE=profile)
    subprocess.run([binary, path], env=environment, check=True, capture_output=True)
    subprocess.run(["llvm-profdata", "merge", "-sparse", profile, "-o", profile + ".data"], check=True)
    text = subprocess.run(
        ["llvm-cov", "export", "-skip-functions", binary, "-instr-profile=" + profile + ".data", *files],
        check=True, capture_output=True).stdout
    return {(f["filename"], *s[:2]) for f in json.loads(text)["data"][0]["files"] for s in f["segments"]
            if s[2] > 0 and s[3]}


def main():
    binary, candidates, corpus, *files = sys.argv[1:]
    paths = sorted((os.path.join(candidates, name) for name in os.listdir(candidates)), key=os.path.getsize)
    runs = {path: regions(binary, path, files) for path in paths}
    chosen, known = [], set()
    while True:
        best = max(paths, key=lambda path: (len(runs[path] - known), -os.path.getsize(path)))
        if not runs[best] - known:
            break
        chosen.append(best)
        known |= runs[best]
    size = sum(map(os.path.getsize, chosen))
    for path in paths:
        if path not in chosen and len(chosen) < MOST_FILES and size + os.path.getsize(path) < MOST_BYTES:
            chosen.append(path)
            size += os.path.getsize(path)
    for name in os.listdir(corpus):
        if re.fullmatch("[0-9a-f]{40}", name):
            os.unlink(os.path.join(corpus, name))
    for path in chosen:
        shutil.copy(path, corpus)
    print(f"{len(chosen)} inputs, {size} bytes, {len(known)} regions")


main()
