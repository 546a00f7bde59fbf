"""What importing costs, beside importing scikit-learn's linear models: ``python benchmarks/import_time.py``.

Each import runs in a process of its own, in turn with the others so that all see the same machine; the fastest of
several runs counts, and what a process that imports nothing takes is taken off.
"""

from __future__ import annotations

import subprocess
import sys
import time

REPEATS = 7
LIMIT = 1.2
NOTHING, REFERENCE = "pass", "import sklearn.linear_model"
MEASURED = ("import sparsebayes", "from sparsebayes import RVR", "import sparsebayes.cli.main")


def seconds(code: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - began


def main() -> int:
    codes = (NOTHING, REFERENCE, *MEASURED)
    best = dict.fromkeys(codes, float("inf"))
    for _ in range(REPEATS):
        for code in codes:
            best[code] = min(best[code], seconds(code))
    reference = best[REFERENCE] - best[NOTHING]
    print(f"{REFERENCE:<32}{reference:8.3f} s")
    for code in MEASURED:
        cost = best[code] - best[NOTHING]
        print(f"{code:<32}{cost:8.3f} s   {cost / reference:5.2f} x")
    return int(best[MEASURED[0]] - best[NOTHING] > LIMIT * reference)


if __name__ == "__main__":
    raise SystemExit(main())
