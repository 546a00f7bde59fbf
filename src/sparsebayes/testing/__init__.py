"""Conformance suites that ship with the package, and the audit of a fitted posterior."""

from .posterior import check_posterior

__all__ = ["check_posterior"]
