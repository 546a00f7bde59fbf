"""A program that loads mutated copies of a model file under guard, and prints what became of them.

It is a process of its own, so that a crash is an exit status, memory has a limit set by the system, and the audit hook,
which cannot be removed, dies with it.

    python mutate_modelfile.py MODEL COPIES {torn,stranger}

A *torn* copy has bytes flipped, is truncated or extended; a *stranger's* is altered with its checksum made to match.
"""

import hashlib
import json
import random
import resource
import sys
from pathlib import Path

import numpy as np

from sparsebayes.export import ModelFileError, load

# Whatever runs, imports or writes something; reading the file is an "open" too, and allowed.
FORBIDDEN = ("exec", "compile", "import", "marshal", "pickle", "ctypes", "subprocess", "os.", "socket", "shutil")
TOKENS = [b"{", b"}", b"[", b"]", b'"', b",", b":", b"0", b"-1", b"1e999", b"9" * 30, b"null", b"NaN", b"\x00", b"\xff"]
SPARE_BYTES = 1 << 26


class Guard:
    """While it is armed, an audit event of a forbidden kind ends the process."""

    def __init__(self):
        self.armed = False
        sys.addaudithook(self)

    def __call__(self, event, args):
        if not self.armed:
            return
        writes = event == "open" and args[1] is not None and set(args[1]) & set("wax+")
        if writes or event.startswith(FORBIDDEN):
            self.armed = False
            sys.exit(f"loading a file led to {event} {args}")


def limit_memory():
    """No more address space than is in use, and a little: a short file must not ask for gigabytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + SPARE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def torn(content, rng):
    mutant = bytearray(content)
    kind = rng.randrange(3)
    if kind == 0:
        for _ in range(rng.randrange(1, 5)):
            mutant[rng.randrange(len(mutant))] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del mutant[rng.randrange(len(mutant)) :]
    else:
        for _ in range(rng.randrange(1, 5)):
            mutant += rng.choice(TOKENS) if rng.randrange(2) else b"\n"
    return bytes(mutant)


def stranger(content, rng):
    """Replace a number, a text or a part of the payload, and seal the file again."""
    document = json.loads(content)
    text = json.dumps(document["payload"], separators=(",", ":")).encode()
    for _ in range(rng.randrange(1, 4)):
        start = rng.randrange(len(text))
        end = min(len(text), start + rng.randrange(12))
        text = text[:start] + rng.choice(TOKENS) + text[end:]
    try:
        document["payload"] = json.loads(text)
    except ValueError:
        return torn(content, rng)
    sealed = json.dumps(document["payload"], separators=(",", ":")).encode()
    document["sha256"] = hashlib.sha256(sealed).hexdigest()
    return json.dumps(document).encode()


def main(path, copies, kind):
    path, rng = Path(path), random.Random(0)
    content, X = path.read_bytes(), np.random.default_rng(1).standard_normal((5, 3))
    expected = [values.tobytes() for values in load(path).predict(X, return_std=True)]
    copy, same, refused = path.with_suffix(".copy"), 0, 0
    guard = Guard()
    limit_memory()
    for _ in range(copies):
        copy.write_bytes({"torn": torn, "stranger": stranger}[kind](content, rng))
        guard.armed = True
        try:
            est = load(copy)
        except ModelFileError as error:
            guard.armed = False
            if isinstance(error.__cause__, MemoryError):
                raise
            refused += 1
            continue
        guard.armed = False
        if kind == "torn":
            assert [values.tobytes() for values in est.predict(X, return_std=True)] == expected
        same += 1
    print(json.dumps({"loaded": same, "refused": refused}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
