r"""Which of several kernels predicts rows left out best, where every fit is made anew.

Of kernels in the order of their widths those in the middle are asked first, and others as long as they are not behind:
the narrowest and the widest take most time, and are seldom the best.  Then the better half goes on, a fold at a time.
Kernels of many parameters follow chance more easily: one of them has to lead wherever it is asked, and clearly in the
end, to take the place of the best with one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sparsebayes.inference.models.evidence import Array
from sparsebayes.kernel_learning.judge import Advantage

# Standard deviations by which rows left out have to speak for another width, and for a kernel of many parameters.
_LIKELY, _CLEAR = 1.0, 2.0
# Kernels in a row that are behind where nothing better is expected beyond.
_BEHIND = 2


class Race:
    """A race of numbered kernels over folds.

    Parameters
    ----------
    density : callable
        Log densities of the rows of a fold, given the number of a kernel and that of the fold.
    weights : sequence of ndarray
        How often the rows of each fold count.
    """

    def __init__(self, density: Callable[[int, int], Array], weights: Sequence[Array]) -> None:
        self.density, self.weights = density, weights
        self._known: dict[tuple[int, int], Array] = {}

    def reached(self, kernels: Sequence[int]) -> list[int]:
        """Those on the way from the middle outwards, either way until two in a row are behind on the first fold."""
        middle = len(kernels) // 2
        found = [kernels[middle]]
        for way in (kernels[middle + 1 :], kernels[:middle][::-1]):
            behind = 0
            for one in way:
                best = max(self.lead(other, None, 1).nats for other in found)
                behind = 0 if self.lead(one, None, 1).nats > best else behind + 1
                found.append(one)
                if behind == _BEHIND:
                    break
        return found

    def fastest(self, kernels: Sequence[int]) -> int:
        """The best, of which the better half is asked on a further fold each time, and two at least.

        The first stays where the best does not lead before it by more than one standard deviation.
        """
        left = list(kernels)
        for folds in range(1, len(self.weights) + 1):
            left = sorted(left, key=lambda one: -self.lead(one, None, folds).nats)
            left = left[: max(2, -(-len(left) // 2))]
        lead = self.lead(left[0], kernels[0])
        return left[0] if lead.nats > _LIKELY * lead.chance else kernels[0]

    def overtaken(self, champion: int, kernels: Sequence[int]) -> int:
        """The best of those that lead before the champion on every further fold, and clearly in the end; else that."""
        left = list(kernels)
        for folds in range(1, len(self.weights) + 1):
            left = [one for one in left if self.lead(one, champion, folds).nats > 0.0]
        best = max(left, key=lambda one: self.lead(one, champion).nats, default=champion)
        lead = self.lead(best, champion)
        return best if lead.nats > _CLEAR * lead.chance else champion

    def lead(self, one: int, other: int | None, folds: int | None = None) -> Advantage:
        """By how many nats one kernel is better than another on the first folds, or than a density of one."""
        among = range(len(self.weights) if folds is None else folds)
        weights = np.concatenate([self.weights[fold] for fold in among])
        says = np.concatenate([self._said(one, k) - (0.0 if other is None else self._said(other, k)) for k in among])
        return Advantage.of(says, weights)

    def _said(self, kernel: int, fold: int) -> Array:
        if (kernel, fold) not in self._known:
            self._known[kernel, fold] = self.density(kernel, fold)
        return self._known[kernel, fold]
