"""Models that the loop climbs on: a set of functions with precisions under a likelihood."""
