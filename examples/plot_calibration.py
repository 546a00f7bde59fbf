"""
Are the error bars honest?
==========================

On rows that the model has not seen, 90 % of the observations should lie in 90 % of the intervals, and so on. The second
picture does the same for class probabilities.
"""

from matplotlib import pyplot

from sparsebayes import RVC, RVR
from sparsebayes.datasets import load, make_sinc
from sparsebayes.report import plot_calibration

figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 4), layout="constrained")

X, y = make_sinc(100, noise=0.1, random_state=0)
new, observed = make_sinc(500, noise=0.1, spacing="random", random_state=1)
plot_calibration(RVR(gamma=1 / 4**2).fit(X, y), new, observed, ax=left)

ripley = load("ripley_synth")
train, test = ripley.train_idx, ripley.test_idx
model = RVC(gamma=1 / 0.5**2).fit(ripley.data[train], ripley.target[train])
plot_calibration(model, ripley.data[test], ripley.target[test], ax=right)
