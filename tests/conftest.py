import sys
from pathlib import Path

# Brute-force references and helpers are plain modules beside the tests that use them.
sys.path[:0] = [str(Path(__file__).parent / folder) for folder in ("reference", "support")]
