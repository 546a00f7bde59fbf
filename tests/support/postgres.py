"""A PostgreSQL server of one's own, on loopback and in a temporary folder, for as long as a test needs it."""

import contextlib
import glob
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time


def binary(name):
    """Path of one of PostgreSQL's programs, or None."""
    return shutil.which(name) or next(iter(sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"), reverse=True)), None)


def unavailable():
    """Why no server can be started, or None."""
    missing = [name for name in ("initdb", "postgres", "psql") if binary(name) is None]
    if missing:
        return f"no PostgreSQL server is installed ({', '.join(missing)} not found)"
    if os.geteuid() == 0 and _plain_user() is None:
        return "PostgreSQL does not run as root, and there is no other user"
    return None


def _plain_user():
    return next((name for name in ("postgres", "nobody") if name in {user.pw_name for user in pwd.getpwall()}), None)


@contextlib.contextmanager
def server():
    """Give a function that runs SQL and returns the rows as lists of texts (None for NULL)."""
    folder = tempfile.mkdtemp(prefix="sb-postgres-")
    user = _plain_user() if os.geteuid() == 0 else None
    if user is not None:
        shutil.chown(folder, user)
    data = os.path.join(folder, "data")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "user": user, "cwd": folder}
    subprocess.run([binary("initdb"), "-D", data, "-A", "trust", "-U", "sb", "-E", "UTF8", "-N"], check=True, **quiet)
    options = ["-D", data, "-p", port, "-c", "listen_addresses=127.0.0.1", "-k", folder, "-c", "fsync=off"]
    process = subprocess.Popen([binary("postgres"), *options], **quiet)
    client = [binary("psql"), "-h", "127.0.0.1", "-p", port, "-U", "sb", "-d", "postgres", "-X", "-q", "-A", "-t"]
    client += ["-v", "ON_ERROR_STOP=1", "-F", "\x1f", "-P", "null=\x1e"]

    def ask(sql):
        environment = os.environ | {"PGCLIENTENCODING": "UTF8"}
        done = subprocess.run(client, input=sql, capture_output=True, text=True, env=environment, timeout=120)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return [[None if c == "\x1e" else c for c in line.split("\x1f")] for line in done.stdout.splitlines()]

    try:
        for _ in range(100):
            with contextlib.suppress(RuntimeError):
                ask("SELECT 1")
                break
            time.sleep(0.1)
        yield ask
    finally:
        process.terminate()
        process.wait(timeout=30)
        shutil.rmtree(folder, ignore_errors=True)
