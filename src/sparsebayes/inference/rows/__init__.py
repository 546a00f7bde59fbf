"""Sums over rows that are elsewhere: on a device, or in partitions."""
