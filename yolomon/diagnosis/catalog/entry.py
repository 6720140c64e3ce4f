"""What is known about one finding code, apart from any one case of it."""

from __future__ import annotations

import msgspec

from yolomon.messages import Message
from yolomon.model import Severity


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One code. `rule` is in words; its numbers are the declared thresholds whose names begin with the code.

    `signals` are names of series and fields of the data model. `explained_by` are codes that hide this one.
    """

    code: str
    severities: tuple[Severity, ...]
    target: str
    signals: tuple[str, ...]
    explained_by: tuple[str, ...]
    title: Message
    meaning: Message
    rule: Message
    fooled_by: tuple[Message, ...]
    remedies: tuple[Message, ...]  # in the order to try
