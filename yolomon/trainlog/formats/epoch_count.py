"""Epochs as trainers write them, counted from 1: from 0 or from 1, or as shares of the run ("1.25")."""

from __future__ import annotations

from math import floor, isfinite

GREATEST = 1e9


class EpochCount:
    """Gives the epochs of one log their numbers from 1.

    A share of an epoch (1.25) lies in the epoch after the whole part. Where there are shares a whole number
    is the END of an epoch: 2.0 is the end of the second (Hugging Face's Trainer, LeRobot). Elsewhere an
    epoch 0 tells that the log counts from 0.

    Args:
        zero_based: whether the log counts from 0, where the format knows; None where the numbers tell.
    """

    def __init__(self, zero_based: bool | None = None) -> None:
        self.zero_based = zero_based
        self._offset = 1 if zero_based else 0
        self._shares = False

    def number(self, value: float) -> int | None:
        """The epoch's number; None for what is none."""
        if not isfinite(value) or not 0 <= value < GREATEST:
            return None
        if value != floor(value):
            self._shares = True
            return floor(value) + 1
        if self._shares and self.zero_based is None:
            return max(1, int(value))
        if value == 0 and self.zero_based is None:
            self._offset = 1
        return int(value) + self._offset
