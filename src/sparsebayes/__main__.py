"""``python -m sparsebayes``: the program, where its script is not on the path."""

from sparsebayes.cli.main import run

if __name__ == "__main__":
    run()
