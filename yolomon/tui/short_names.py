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

# These concern every GPU of the job, not only the one they name: their onset is marked on all.
WHOLE_JOB = frozenset(
    {"load-imbalance", "sync-wait", "collective-hang", "stall", "data-starvation", "slowdown", "nan-loss"}
)


def short_name(tr: Translate, finding: Finding) -> str:
    """The finding in two or three words."""
    known = SHORT.get(finding.code)
    return tr(known) if known is not None else finding.code.replace("-", " ")


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
