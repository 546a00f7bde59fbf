"""Conformance suites that ship with the package: a new design inherits the one for designs."""
