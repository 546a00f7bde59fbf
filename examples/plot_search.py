"""
The search, move by move
========================

The objective never falls within a start. Where the noise is learned the search starts several times. The highest
objective is kept, unless it uses up many more rows and predicts rows that were left out worse.
"""

from sparsebayes import RVR
from sparsebayes.datasets import make_friedman1
from sparsebayes.report import plot_evidence

X, y = make_friedman1(150, random_state=0)
plot_evidence(RVR(gamma=0.5).fit(X, y))
