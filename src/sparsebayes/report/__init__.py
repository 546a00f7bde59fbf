"""Pictures and pages of fitted models."""

from .calibration import CalibrationDisplay, plot_calibration
from .case import Case, Input
from .decision import DecisionDisplay, plot_decision
from .evidence import EvidenceDisplay, plot_evidence
from .fit import FitDisplay, plot_fit
from .page import render_report, write_report
from .relevance import RelevanceDisplay, plot_relevance

__all__ = [
    "CalibrationDisplay",
    "Case",
    "DecisionDisplay",
    "EvidenceDisplay",
    "FitDisplay",
    "Input",
    "RelevanceDisplay",
    "plot_calibration",
    "plot_decision",
    "plot_evidence",
    "plot_fit",
    "plot_relevance",
    "render_report",
    "write_report",
]
