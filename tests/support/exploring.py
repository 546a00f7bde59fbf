"""How many random problems the property tests try, and whether these are the same every time.

By default the draws are derandomised: a failure is to be looked at, not to come and go.  ``SPARSEBAYES_EXPLORE=200 make
test`` (or with pytest alone) tries so many problems in each test, new ones every time; a failure prints its seed.
"""

import os

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

EXPLORE = int(os.environ.get("SPARSEBAYES_EXPLORE", "0"))

# Every problem is made from one of these; no number is a smaller problem than another.
seeds = st.integers(0, 2**32 - 1)


def examples(count):
    """Settings with so many problems a test, or with as many as the environment asks for."""
    return settings(
        max_examples=EXPLORE or count,
        deadline=None,
        derandomize=not EXPLORE,
        database=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
