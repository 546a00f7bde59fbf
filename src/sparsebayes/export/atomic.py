"""Files that are written whole or not at all, under the name by which exporters know them."""

from sparsebayes.atomic import check_target, write_atomically

__all__ = ["check_target", "write_atomically"]
