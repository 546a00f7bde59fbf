"""Every place that a search begins from passes the conformance suite."""

from sparsebayes.inference.search.starts import Full, Held, Kick, Schedule
from sparsebayes.testing.starts import PolicyConformance


class TestSchedule(PolicyConformance):
    def make(self):
        return Schedule()


class TestHeld(PolicyConformance):
    def make(self):
        return Held(0.01)


class TestFull(PolicyConformance):
    def make(self):
        return Full()


class TestKick(PolicyConformance):
    def make(self):
        return Kick(4.0)
