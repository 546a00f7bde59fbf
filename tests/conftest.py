import sys
from pathlib import Path

# Brute-force references are plain modules beside the tests that use them.
sys.path.insert(0, str(Path(__file__).parent / "reference"))
