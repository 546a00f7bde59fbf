"""The command line: ``sparsebayes demo | fit | predict``."""
