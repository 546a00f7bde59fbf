"""The command line: ``sparsebayes``, with one file for each command in ``commands``."""
