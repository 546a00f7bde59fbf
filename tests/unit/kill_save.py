"""A program that kills saves, each in a process of its own, and prints what their files were afterwards.

    python kill_save.py OLD NEW TARGET

First at every line of the modules that touch the disk, in turn, until one save gets through; then at random moments.
"""

import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import numpy as np

from sparsebayes import atomic
from sparsebayes.export import load, modelfile, save

MODULES = (atomic.__file__, modelfile.__file__)
RANDOM_KILLS = 60


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def die_at(count):
    """A trace function that ends the process at that many lines of those modules."""
    left = count

    def trace(frame, event, arg):
        nonlocal left
        if frame.f_code.co_filename not in MODULES:
            return None
        if event == "line":
            left -= 1
            if left == 0:
                die()
        return trace

    return trace


def in_child(action):
    """Run in a fork; return its process number."""
    child = os.fork()
    if child == 0:
        action()
        os._exit(0)
    return child


def main(old, new, target):
    old, new, target = Path(old), Path(new), Path(target)
    est, contents = load(new), {old.read_bytes(): "old", new.read_bytes(): "new"}
    found = {"old": 0, "new": 0, "torn": 0}

    def look():
        state = contents.get(target.read_bytes(), "torn")
        load(target)
        found[state] += 1
        for left in target.parent.glob(".*.tmp"):
            left.unlink()

    began = time.perf_counter()
    save(est, target)
    duration = time.perf_counter() - began
    lines = done = 0
    while not done:
        lines += 1
        shutil.copyfile(old, target)
        count = lines

        def traced(count=count):
            sys.settrace(die_at(count))
            save(est, target)

        _, status = os.waitpid(in_child(traced), 0)
        done = os.WIFEXITED(status)
        look()
    rng = np.random.default_rng(0)
    for _ in range(RANDOM_KILLS):
        shutil.copyfile(old, target)
        child = in_child(lambda: save(est, target))
        time.sleep(rng.uniform(0.0, 3.0 * duration))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        look()
    print(json.dumps(found | {"lines": lines}))


if __name__ == "__main__":
    main(*sys.argv[1:])
