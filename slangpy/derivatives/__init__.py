"""Products with the Jacobian of a function, and checks of its derivatives against differences."""

from __future__ import annotations

from .check import check_gradients as check_gradients
from .report import GradientError as GradientError, GradientReport as GradientReport
from .transforms import jvp as jvp, vjp as vjp
