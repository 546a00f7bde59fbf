"""The papers' tables and figures, one file each with a ``STUDY``; named in ``studies.registry``, a file is run."""
