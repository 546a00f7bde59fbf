"""The error of a model file that cannot be read."""


class ModelFileError(ValueError):
    """A file is not a complete, unaltered model file that this version can read."""
