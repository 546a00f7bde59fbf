"""Work on all cores: in order, whoever asks, and after a fork."""

import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise

import pytest

from sparsebayes.threads import on_all_cores, side_by_side


def squares(n):
    return on_all_cores(lambda k: k * k, range(n))


def test_results_come_in_order():
    assert squares(50) == [k * k for k in range(50)]


def test_runs_cover_all_rows_once():
    runs = side_by_side(lambda some: (some.start, some.stop), 10_001)
    assert runs[0][0] == 0
    assert runs[-1][1] == 10_001
    assert all(before[1] == after[0] for before, after in pairwise(runs))


def test_workers_that_ask_for_workers_do_not_wait_for_each_other():
    assert on_all_cores(squares, [3] * 40) == [[0, 1, 4]] * 40


def test_an_error_reaches_the_caller_and_the_next_call_works():
    with pytest.raises(ZeroDivisionError):
        on_all_cores(lambda k: 1 // k, range(5))
    assert squares(5) == [0, 1, 4, 9, 16]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own():
    squares(5)  # the parent's threads are there
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
        assert pool.submit(squares, 5).result(timeout=60) == [0, 1, 4, 9, 16]
