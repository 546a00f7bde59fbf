"""One row in a process of its own, which can be ended: ``python -m sparsebayes.benchmarks.ledger.child REQUEST``.

The request is JSON: problem, seed, method, options, limit, and a variation of the search where there is one. The last
line of the output is the row as JSON.
"""

from __future__ import annotations

import json
import math
import sys
import time
from contextlib import suppress
from typing import Any

from sparsebayes.benchmarks.ledger.measure import OURS, Row, attempt, measure
from sparsebayes.benchmarks.ledger.problems import PROBLEMS
from sparsebayes.benchmarks.ledger.rivals import measure_rival


def limit_processor_time(seconds: float) -> None:
    """Let the system end this process once it has computed for so long; other work on the machine does not count."""
    with suppress(ImportError):  # elsewhere than on Unix, the clock of the parent is all there is
        import resource

        end = math.ceil(time.process_time() + seconds)
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        resource.setrlimit(resource.RLIMIT_CPU, (end, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def answer(request: dict[str, Any]) -> Row:
    """The row that a request asks for."""
    problem, seed, method = PROBLEMS[request["problem"]], int(request["seed"]), request["method"]
    if method == OURS:
        return attempt(problem, seed, method, lambda: measure(problem, seed, **request["options"]))
    return attempt(problem, seed, method, lambda: measure_rival(method, problem, seed))


def main(request: dict[str, Any]) -> None:
    """Answer one request."""
    limit_processor_time(request["limit"])
    if request.get("variation"):
        from sparsebayes.benchmarks.ledger.ablation import Variation

        Variation(**request["variation"]).apply()
    print(json.dumps(answer(request).as_dict()))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
