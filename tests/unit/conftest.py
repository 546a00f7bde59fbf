"""Fixtures of several files."""

import signal
import threading

import pytest
from modelfiles import problem

from sparsebayes import RVR
from sparsebayes.export import save


@pytest.fixture
def no_hang():
    """A fit that takes this long on data this small will never end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def give_up(signum, frame):
        raise TimeoutError("the fit hangs")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "sinc.model"


@pytest.fixture
def saved(path):
    X, y = problem()
    est = RVR(gamma=0.3).fit(X, y)
    save(est, path, metadata={"note": "ä"})
    return est, X, path
