"""The papers' solvers."""
