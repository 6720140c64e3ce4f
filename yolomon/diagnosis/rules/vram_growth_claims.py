"""What is said of device memory that grows: how fast, why, and when it is full."""

from __future__ import annotations

from yolomon.diagnosis.forecast import Eta
from yolomon.diagnosis.rules.base import Claim, View
from yolomon.diagnosis.rules.memory_series import Growing
from yolomon.diagnosis.thresholds import declare
from yolomon.history import GpuHistory
from yolomon.messages import Message, msg
from yolomon.units import duration, gibibytes, size

RISK_SECONDS = declare("oom-risk.seconds", 600.0, "s", "until the limit is reached, at the earliest")


def growth_claims(view: View, gpu: GpuHistory, kind: str, growing: Growing, ends: Eta | None) -> list[Claim]:
    """vram-growth, and oom-risk where the limit is near.

    Args:
        view: what may be looked at.
        gpu: whose memory it is.
        kind: "allocated" and "reserved" by torch, or "device" where only NVML tells.
        growing: by how much.
        ends: when the run will be over, if that is known.
    """
    index = gpu.info.index
    total = gpu.info.memory_total_bytes
    used = gpu.sample.memory_used_bytes if gpu.sample is not None else None
    slope = growing.trend.slope
    rate = growing.steps_per_second
    seconds: float | None = None
    earliest = latest = None
    if total is not None and used is not None and slope is not None and rate > 0 and slope.low > 0:
        room = max(total - used, 0)
        seconds = room / (slope.value * rate)
        earliest, latest = room / (max(slope.high, slope.value) * rate), room / (slope.low * rate)
    left = None if ends is None else ends.seconds
    fits = seconds is not None and earliest is not None and left is not None and earliest > 1.5 * left
    if left is None and earliest is not None and earliest > 86400:
        fits = True
    epoch = _epoch_at(view, seconds)
    per_step = growing.bytes_per_step
    if seconds is None:
        summary = msg("memory of GPU {gpu} grows by {step} a step", gpu=index, step=size(per_step))
    elif fits:
        summary = msg(
            "memory of GPU {gpu} grows by {step} a step; full in {time}, the run ends before that",
            gpu=index,
            step=size(per_step),
            time=duration(seconds),
        )
    elif epoch is not None:
        summary = msg(
            "memory of GPU {gpu} grows by {step} a step: full in {time} ({low} to {high}), in epoch {epoch}",
            gpu=index,
            step=size(per_step),
            time=duration(seconds),
            low=duration(earliest),
            high=duration(latest),
            epoch=epoch,
        )
    else:
        summary = msg(
            "memory of GPU {gpu} grows by {step} a step: full in {time} ({low} to {high})",
            gpu=index,
            step=size(per_step),
            time=duration(seconds),
            low=duration(earliest),
            high=duration(latest),
        )
    cause: Message
    remedy: Message
    if kind == "allocated":
        cause = msg(
            "tensors are kept from step to step: allocated memory rises, {first} to {last} in "
            "{steps:.0f} steps",
            first=gibibytes(growing.first_bytes),
            last=gibibytes(growing.last_bytes),
            steps=growing.steps,
        )
        remedy = msg(
            "look for a list, a callback or a running total that keeps tensors: store "
            "loss.item() or loss.detach().cpu()"
        )
    elif kind == "reserved":
        cause = msg("the allocator reserves more and more while allocated memory stays: fragmentation")
        remedy = msg(
            "start with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; batches of one size fragment less"
        )
    else:
        cause = msg(
            "the device's memory rises with every step, {first} to {last} in {time}",
            first=gibibytes(growing.first_bytes),
            last=gibibytes(growing.last_bytes),
            time=duration(growing.seconds),
        )
        remedy = msg(
            "log torch.cuda.memory_allocated(): if it rises, tensors are kept; if not, the "
            "allocator fragments"
        )
    unseen = list(view.job.unseen)
    if kind == "device":
        unseen.append(msg("the log has no numbers of torch's allocator: a leak and fragmentation look alike"))
    evidence: dict[str, float | str | None] = {
        "kind": kind,
        "bytes_per_step": round(per_step),
        "bytes_per_second": round(per_step * rate),
        "rise_bytes": round(growing.last_bytes - growing.first_bytes),
        "steps": growing.steps,
        "span_seconds": round(growing.seconds, 1),
        "memory_used_bytes": used,
        "memory_total_bytes": total,
        "seconds_to_full": None if seconds is None else round(seconds),
        "seconds_to_full_low": None if earliest is None else round(earliest),
        "seconds_to_full_high": None if latest is None else round(latest),
        "epoch_when_full": epoch,
        "seconds_to_end_of_run": None if left is None else round(left),
        "mann_kendall_z": round(growing.trend.z, 1),
    }
    claims = [
        Claim(
            code="vram-growth",
            target=f"gpu{index}",
            severity="info" if fits else "warning",
            onset_ts=growing.onset_ts,
            summary=summary,
            cause=cause,
            remedy=remedy,
            evidence=evidence,
            signals=(
                "memory_used_bytes",
                "memory_allocated_bytes" if kind != "reserved" else "memory_reserved_bytes",
            ),
            explains=("vram-fragmentation",),
            confidence="high" if kind == "allocated" else "medium",
            unseen=tuple(unseen),
            clear_after_seconds=60.0,
        )
    ]
    if seconds is not None and earliest is not None and earliest < view.thresholds[RISK_SECONDS] and not fits:
        claims.append(
            Claim(
                code="oom-risk",
                target=f"gpu{index}",
                severity="critical",
                onset_ts=growing.onset_ts,
                summary=msg(
                    "GPU {gpu} runs out of memory in {time} ({low} to {high}): {used} of {total} used",
                    gpu=index,
                    time=duration(seconds),
                    low=duration(earliest),
                    high=duration(latest),
                    used=gibibytes(used),
                    total=gibibytes(total),
                ),
                cause=cause,
                remedy=msg(
                    "save a checkpoint now and restart before it is full: python process memory "
                    "is given back at its end"
                ),
                evidence=evidence,
                signals=("memory_used_bytes",),
                clear_after_seconds=60.0,
            )
        )
    return claims


def _epoch_at(view: View, seconds: float | None) -> int | None:
    """The epoch that will be on in `seconds`, by the run's own pace."""
    train = view.history.train
    leader = view.phases.leader
    if seconds is None or train.epoch is None or leader is None:
        return None
    started: float | None = None
    for record in train.epochs:
        if not record.backlog:
            started = record.ts
            break
    first_epoch = next((r.epoch for r in train.epochs if not r.backlog), None)
    last = train.epochs[-1] if train.epochs else None
    if (
        started is not None
        and last is not None
        and last.epoch
        and first_epoch is not None
        and last.epoch > first_epoch
    ):
        pace = (last.ts - started) / (last.epoch - first_epoch)
        since = view.now_ts - last.ts
        return int(last.epoch + 1 + (seconds + since) / pace) if pace > 0 else None
    gap = leader.typical_gap()
    if gap and train.batch is not None and train.batches:
        left = seconds - gap * (train.batches - train.batch)
        return train.epoch if left <= 0 else int(train.epoch + 1 + left / (gap * train.batches))
    return None
