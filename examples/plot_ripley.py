"""
Ripley's two classes
====================

Four relevance vectors, and probabilities that allow for the uncertainty of the weights. The dotted lines are where one
class is three times as likely as the other.
"""

from sparsebayes import RVC
from sparsebayes.datasets import load
from sparsebayes.report import plot_decision

ripley = load("ripley_synth")
X, y = ripley.data[ripley.train_idx], ripley.target[ripley.train_idx]
model = RVC(gamma=1 / 0.5**2).fit(X, y)
plot_decision(model, X, y)
