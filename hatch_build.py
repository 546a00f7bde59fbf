"""Compile the one function of the package that is worth it, where a C compiler is at hand.

Without one nothing is compiled, and the installation goes on: the function in NumPy that the compiled one repeats then
serves.  ``python hatch_build.py`` compiles it in a source tree that is used without installation.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface as _Hook
except ImportError:  # called by itself
    _Hook = object

SOURCE = Path("sparsebayes/inference/models/settle.c")
# No suffix that Python would take for that of a module.
LIBRARY = SOURCE.with_suffix(".library")
_FLAGS = ("-O3", "-shared", "-fPIC")
_PATIENCE = 120


def compilers() -> list[list[str]]:
    """Commands that may be C compilers, the one that was asked for first."""
    named = (os.environ.get("CC"), sysconfig.get_config_var("CC"), "cc", "gcc", "clang")
    commands = [shlex.split(name) for name in named if name]
    return [command for command in commands if command and shutil.which(command[0])]


def compile_library(source: Path, library: Path) -> bool:
    """Make a shared library of a C source; whether that was possible."""
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / library.name
        for command in compilers():
            arguments = [*command, *_FLAGS, f'-DSOURCE="{digest}"', str(source), "-o", str(made), "-lm"]
            try:
                subprocess.run(arguments, check=True, capture_output=True, timeout=_PATIENCE)
                # Renamed into place, so that nobody who has the old one loaded sees half of the new one.
                placed = library.with_suffix(".new")
                shutil.copyfile(made, placed)
                placed.replace(library)
            except (OSError, subprocess.SubprocessError):
                continue
            return True
    return False


class CustomBuildHook(_Hook):
    """Put the library into a wheel, or beside its source where that is installed as it lies."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before the files are collected."""
        if self.target_name != "wheel":
            return
        source = Path(self.root) / "src" / SOURCE
        if version == "editable":
            compile_library(source, source.with_suffix(".library"))
            return
        self.folder = Path(tempfile.mkdtemp())
        library = self.folder / LIBRARY.name
        if not compile_library(source, library):
            return
        from packaging.tags import sys_tags

        # It is called through ctypes and knows nothing of Python: one wheel serves all versions on this platform.
        plain = next(tag for tag in sys_tags() if not tag.platform.startswith(("manylinux", "musllinux")))
        build_data["tag"] = f"py3-none-{plain.platform}"
        build_data["pure_python"] = False
        build_data["force_include"][str(library)] = LIBRARY.as_posix()

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Clean up."""
        shutil.rmtree(getattr(self, "folder", ""), ignore_errors=True)


if __name__ == "__main__":
    tree = Path(__file__).parent / "src" / SOURCE
    sys.exit(0 if compile_library(tree, tree.with_suffix(".library")) else "no C compiler was found")
