"""The table of twelve lines that pycocotools prints after an evaluation (`COCOeval.summarize`).

Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 0.233
"""

from __future__ import annotations

import re

from yolomon.trainlog.formats.numbers import number

_ROW = re.compile(
    r"Average (Precision|Recall) +\((?:AP|AR)\) +@\[ *IoU=([\d.:]+) *"
    r"\| *area= *(\w+) *\| *maxDets= *(\d+) *\] = *(\S+)"
)
_AREAS = {"all": "", "small": "_s", "medium": "_m", "large": "_l"}


class CocoSummary:
    """Collects the rows of one table; it is complete with the recall of large objects, its last row."""

    def __init__(self) -> None:
        self._rows: dict[str, float] = {}
        self._kind = "bbox"

    def feed(self, text: str) -> dict[str, float] | None:
        """Take a line. The table as {"coco/bbox_mAP": 0 to 1, ...} when this line completes it, else None.

        -1 stands for "no objects of that size" and is left out.
        """
        if "Evaluate annotation type" in text:
            self._kind = "segm" if "segm" in text else "keypoints" if "keypoints" in text else "bbox"
            return None
        match = _ROW.search(text)
        if match is None:
            return None
        what, iou, area, most, cell = match.groups()
        value = number(cell)
        if what == "Precision" and iou == "0.50:0.95" and area == "all":
            self._rows = {}
        if value is not None and value >= 0:
            if what == "Precision":
                level = "" if iou == "0.50:0.95" else "_" + iou[2:]
                self._rows[f"coco/{self._kind}_mAP{level}{_AREAS.get(area, '_' + area)}"] = value
            else:
                self._rows[f"coco/{self._kind}_AR_{most}{_AREAS.get(area, '_' + area)}"] = value
        if what == "Recall" and area == "large":
            table, self._rows = self._rows, {}
            return table
        return None
