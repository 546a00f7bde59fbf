"""Conformance suites that a new design, likelihood or solver inherits."""
