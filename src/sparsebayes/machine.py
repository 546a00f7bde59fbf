"""Where something was measured: without this its seconds mean nothing."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from joblib import effective_n_jobs
from threadpoolctl import threadpool_info

_PACKAGES = ("sparsebayes", "numpy", "scipy", "scikit-learn", "fastrvm", "sklearn-rvm", "pyarrow")


def describe_machine() -> dict[str, Any]:
    """Processor, memory, system, load and versions."""
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "system": platform.platform(),
        "processor": _processor(),
        "cores": effective_n_jobs(-1),
        "load": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "packages": {name: installed(name) for name in _PACKAGES},
        "blas": sorted(
            {f"{pool['internal_api']} {pool['version']}" for pool in threadpool_info() if pool["user_api"] == "blas"}
        ),
    }


def installed(package: str) -> str | None:
    """Version of a package; None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
