"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path


def check_target(path: str | os.PathLike[str]) -> Path:
    """Return where a file written to ``path`` would lie, links followed; raise where it cannot lie there.

    Parameters
    ----------
    path : path-like
        The file to be written; its folder must exist.
    """
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{os.fspath(path)}: the folder {target.parent} does not exist; create it first")
    if target.is_dir():
        raise IsADirectoryError(f"{os.fspath(path)} is a folder; name a file in it")
    # Replacing a device or a pipe would remove it.
    if target.exists() and not target.is_file():
        raise OSError(f"{os.fspath(path)} is not a regular file; name another")
    return target


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write ``content`` so that at every moment ``path`` is the old file or the new one, complete.

    Parameters
    ----------
    path : path-like
        The file; replaced if it exists, its permissions kept.
    content : bytes
        All of its content.
    """
    target = check_target(path)
    # In the same folder, since a rename is atomic only within one file system.
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        # "x" gives the permissions that any new file gets; the functions of tempfile would hide it from others.
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make the new name itself survive a power cut, where the system lets a folder be opened."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
