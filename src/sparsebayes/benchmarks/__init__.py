"""What the library costs beside its rivals: every figure a ratio that was measured in the same run."""
