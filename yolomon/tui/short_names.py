"""What a finding is called in two or three words, for a card's frame; the sentences are the finding's own."""

from __future__ import annotations

from yolomon.messages import Message, Translate, msg
from yolomon.model import Finding
from yolomon.tui.words import cells_of, fit_words, plain

SHORT: dict[str, Message] = {
    "data-starvation": msg("waits for data"),
    "bursty-load": msg("works in bursts"),
    "gpu-underused": msg("underused"),
    "load-imbalance": msg("slow rank"),
    "sync-wait": msg("waits for a rank"),
    "gpu-idle": msg("idle"),
    "collective-hang": msg("collective hangs"),
    "stall": msg("stalled"),
    "trainer-ended": msg("training ended"),
    "trainer-died": msg("training died"),
    "vram-growth": msg("memory grows"),
    "vram-fragmentation": msg("memory fragmented"),
    "oom-risk": msg("out of memory soon"),
    "host-memory-growth": msg("host memory grows"),
    "host-memory-low": msg("host memory low"),
    "shm-low": msg("/dev/shm nearly full"),
    "disk-low": msg("disk nearly full"),
    "orphan-memory": msg("orphaned memory"),
    "gpu-contention": msg("another job here"),
    "thermal-throttle": msg("slowed by heat"),
    "power-throttle": msg("slowed by power"),
    "pcie-degraded": msg("slow PCIe link"),
    "ecc-error": msg("memory errors"),
    "xid": msg("driver error"),
    "gpu-lost": msg("lost"),
    "row-remap": msg("memory rows fail"),
    "nvml-unavailable": msg("no NVML"),
    "nan-loss": msg("loss is NaN"),
    "loss-spike": msg("loss spike"),
    "loss-divergence": msg("loss diverges"),
    "no-progress": msg("no progress"),
    "slowdown": msg("slower"),
    "amp-underflow": msg("steps are skipped (AMP)"),
    "dead-features": msg("features die"),
    "exploding-features": msg("features explode"),
    "log-silent": msg("log silent"),
}

# The same in at most nine cells, for GPUs beside one another; those that are as short anyway are not here.
SHORTEST: dict[str, Message] = {
    "data-starvation": msg("no data"),
    "bursty-load": msg("bursts"),
    "sync-wait": msg("waits"),
    "collective-hang": msg("hangs"),
    "gpu-underused": msg("low use"),
    "trainer-ended": msg("ended"),
    "trainer-died": msg("died"),
    "vram-growth": msg("mem grows"),
    "vram-fragmentation": msg("fragments"),
    "oom-risk": msg("OOM soon"),
    "orphan-memory": msg("orphan"),
    "gpu-contention": msg("other job"),
    "thermal-throttle": msg("too hot"),
    "power-throttle": msg("power cap"),
    "pcie-degraded": msg("slow PCIe"),
    "ecc-error": msg("ECC error"),
    "xid": msg("Xid error"),
    "row-remap": msg("bad rows"),
    "nan-loss": msg("NaN loss"),
    "loss-spike": msg("spike"),
    "loss-divergence": msg("diverges"),
    "no-progress": msg("no change"),
}

# These concern every GPU of the job, not only the one they name: their onset is marked on all.
WHOLE_JOB = frozenset(
    {"load-imbalance", "sync-wait", "collective-hang", "stall", "data-starvation", "slowdown", "nan-loss"}
)


def short_name(tr: Translate, finding: Finding) -> str:
    """The finding in two or three words."""
    known = SHORT.get(finding.code)
    return tr(known) if known is not None else finding.code.replace("-", " ")


def shortest_name(tr: Translate, finding: Finding) -> str:
    """The finding in one or two short words."""
    known = SHORTEST.get(finding.code)
    return tr(known) if known is not None else short_name(tr, finding)


def target_words(tr: Translate, target: str) -> str:
    """As "GPU 1"."""
    if target.startswith("gpu") and target[3:].isdigit():
        return f"GPU {target[3:]}"
    return {"host": tr("host"), "run": tr("run"), "log": tr("log")}.get(target, plain(target))


def brief(tr: Translate, finding: Finding, room: int, ellipsis: str = "…") -> str:
    """The finding in one line: its sentence where it fits, else where and what in few words."""
    sentence = plain(tr(finding.summary))
    if cells_of(sentence) <= room:
        return sentence
    name = short_name(tr, finding)
    where = "" if finding.target == "run" else target_words(tr, finding.target) + ": "
    return fit_words(where + name, room, ellipsis)
