"""What NVIDIA's Xid numbers mean for a training job.

Numbers and actions: NVIDIA's "XID Errors" (docs.nvidia.com/deploy/xid-errors), DCGM's health checks (48, 74,
79, 95, 119, 120, 140 fail; 94 warns) and gpud's table.
"""

from __future__ import annotations

import msgspec

from yolomon.messages import Message, msg
from yolomon.model import Severity


class XidMeaning(msgspec.Struct, frozen=True):
    """What a number means. `survives`: whether the process on the GPU goes on; None: it depends."""

    severity: Severity
    survives: bool | None
    meaning: Message
    action: Message


_RESTART = msg("Restart the run from its last checkpoint; the GPU itself is fine")
_BUG = msg(
    "Mostly a bug: look for an index out of range or a custom kernel; CUDA_LAUNCH_BLOCKING=1 shows where"
)
_RESET = msg("Save what you can, then reset the GPU (nvidia-smi -r) or reboot the machine")
_POWER = msg("Power-cycle the machine; check power supply, cables, riser and heat")
_FOLLOWS = msg("See the error before it: this one only follows")

XIDS: dict[int, XidMeaning] = {
    13: XidMeaning("warning", False, msg("the program did an invalid operation on the GPU"), _BUG),
    31: XidMeaning("warning", False, msg("the program used GPU memory it does not own"), _BUG),
    32: XidMeaning("warning", False, msg("corrupt commands on the PCIe bus"), _RESTART),
    43: XidMeaning("warning", False, msg("the program's work on the GPU stopped"), _FOLLOWS),
    45: XidMeaning(
        "warning", False, msg("the program's work was cleaned up after an error or a kill"), _FOLLOWS
    ),
    48: XidMeaning("critical", False, msg("memory error of two bits that cannot be corrected"), _RESET),
    61: XidMeaning("critical", False, msg("the GPU's own controller stopped"), _RESET),
    62: XidMeaning("critical", False, msg("the GPU's own controller halted"), _RESET),
    63: XidMeaning(
        "info", True, msg("a bad memory row is replaced"), msg("Reset the GPU when the run is over")
    ),
    64: XidMeaning("critical", None, msg("a bad memory row could not be replaced"), _RESET),
    68: XidMeaning("warning", False, msg("the video decoder failed"), _RESTART),
    69: XidMeaning("warning", False, msg("the program gave the GPU an invalid command"), _BUG),
    74: XidMeaning(
        "critical", None, msg("error on an NVLink"), msg("Reset all GPUs; again: check bridges and cables")
    ),
    79: XidMeaning("critical", False, msg("the GPU fell off the bus"), _POWER),
    92: XidMeaning(
        "warning", True, msg("many corrected memory errors"), msg("Let the card be tested after the run")
    ),
    94: XidMeaning("warning", False, msg("memory error that hit only this program"), _RESTART),
    95: XidMeaning("critical", False, msg("memory error that may have hit every program"), _RESET),
    109: XidMeaning("critical", False, msg("a context switch on the GPU took too long"), _RESET),
    119: XidMeaning("critical", None, msg("the GPU's system processor (GSP) gives no answer"), _RESET),
    120: XidMeaning("critical", None, msg("the GPU's system processor (GSP) failed"), _RESET),
    140: XidMeaning("critical", False, msg("memory error that is not recovered"), _RESET),
    143: XidMeaning("critical", False, msg("the GPU did not start properly"), _RESET),
    154: XidMeaning(
        "info", None, msg("the driver tells which recovery it wants"), msg("See dmesg for the action")
    ),
    158: XidMeaning("critical", False, msg("the GPU's memory controller failed"), _RESET),
}
UNKNOWN = XidMeaning(
    "warning",
    None,
    msg("an error that is not in the table"),
    msg("Look the number up in NVIDIA's list of Xid errors"),
)
FOLLOWERS = frozenset({43, 45, 154})


def meaning_of(xid: int) -> XidMeaning:
    """The meaning of a number, `UNKNOWN` for one that is not in the table."""
    return XIDS.get(xid, UNKNOWN)
