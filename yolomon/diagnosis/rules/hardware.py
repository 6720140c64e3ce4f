"""GPUs that are lost, driver errors (Xid), memory errors (ECC) and remapped rows: events, no statistics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from yolomon.diagnosis.rules.base import Claim, View
from yolomon.diagnosis.rules.xid_table import FOLLOWERS, meaning_of
from yolomon.diagnosis.thresholds import declare
from yolomon.history import GpuHistory
from yolomon.messages import msg
from yolomon.model import GpuEvent, Item, Severity
from yolomon.units import duration

NO_ANSWER = declare(
    "gpu-lost.no-answer-seconds",
    30.0,
    "s",
    "a GPU that gives no answer for longer, while another one answers, is told",
)
VANISHED = declare(
    "gpu-lost.vanished-seconds", 20.0, "s", "a GPU without readings for longer, while others go on, is gone"
)
EVENT_SHOWN = declare("xid.shown-seconds", 1800.0, "s", "how long an Xid event is shown")
ECC_SHOWN = declare("ecc-error.shown-seconds", 3600.0, "s", "how long a corrected memory error is shown")
_ENDS = (
    "collective-hang",
    "stall",
    "trainer-died",
    "load-imbalance",
    "gpu-idle",
    "data-starvation",
    "slowdown",
)


class Hardware:
    """Tells what the driver tells; counters count from when we began to watch."""

    codes: ClassVar[tuple[str, ...]] = ("gpu-lost", "xid", "ecc-error", "row-remap")

    def __init__(self) -> None:
        self._first: dict[str, tuple[int | None, int | None]] = {}  # UUID -> ECC counters at the start
        self._rise: dict[tuple[str, str], tuple[float, float, int]] = {}  # first and newest rise, count
        self._pending_at_start: dict[str, bool] = {}
        self._remap_ts: dict[str, float] = {}

    def observe(self, item: Item, view: View) -> None:
        """Nothing to keep; the history holds events and the newest readings."""

    def check(self, view: View) -> Iterator[Claim]:
        """All GPUs, each by itself."""
        gpus = view.history.by_index()
        newest = max((gpu.answer_ts for gpu in gpus if gpu.answer_ts is not None), default=None)
        for gpu in gpus:
            lost = self._lost(gpu, newest, view)
            if lost is not None:
                yield lost
            yield from self._ecc(gpu, view)
            yield from self._remap(gpu, view)
        status = view.history.statuses.get("nvml")
        if status is not None and status.reason == "gpu-missing":
            yield Claim(
                code="gpu-lost",
                target="host",
                severity="critical",
                onset_ts=status.ts,
                summary=status.cause or msg("A GPU is missing"),
                cause=msg("A GPU that was there is not there any more"),
                remedy=status.remedy
                or msg("Power-cycle the machine; check power supply, cables, riser and heat"),
            )
        yield from self._xids(view)

    def _lost(self, gpu: GpuHistory, newest_answer: float | None, view: View) -> Claim | None:
        sample, now = gpu.sample, view.now_ts
        if sample is None or gpu.sample_ts is None:
            return None
        target = f"gpu{gpu.info.index}"
        if sample.state == "lost":
            since = sample.state_since_ts if sample.state_since_ts is not None else gpu.sample_ts
            return Claim(
                code="gpu-lost",
                target=target,
                severity="critical",
                onset_ts=since,
                summary=msg(
                    "GPU {index} has been lost for {for_long}",
                    index=gpu.info.index,
                    for_long=duration(now - since),
                ),
                cause=msg("The driver says: {error}", error=sample.error or "GPU is lost"),
                remedy=msg(
                    "Power-cycle the machine; check power supply, cables, riser and heat. The run on "
                    "this GPU is lost"
                ),
                evidence={
                    "lost_seconds": now - since,
                    "last_temperature_celsius": _last(gpu, "temperature_celsius"),
                },
                signals=("temperature_celsius", "power_watts"),
                explains=_ENDS,
            )
        if newest_answer is None:
            return None
        silent_since = gpu.answer_ts if gpu.answer_ts is not None else sample.state_since_ts
        if silent_since is None or newest_answer - silent_since < 5.0:
            return None  # all are silent alike: the driver or the connection, not this GPU
        silent = now - silent_since
        if sample.state == "no-answer" and silent > view.thresholds[NO_ANSWER]:
            what = msg(
                "GPU {index} gives no answer for {silent}", index=gpu.info.index, silent=duration(silent)
            )
            cause = msg("A call to the driver does not come back for this GPU while others answer")
        elif sample.state == "ok" and silent > max(view.thresholds[VANISHED], 5 * _interval(gpu)):
            what = msg("GPU {index} has vanished for {silent}", index=gpu.info.index, silent=duration(silent))
            cause = msg("It is no longer among the GPUs that the driver lists; its peers are")
        else:
            return None
        return Claim(
            code="gpu-lost",
            target=target,
            severity="critical",
            onset_ts=silent_since,
            summary=what,
            cause=cause,
            remedy=msg(
                "See what `sudo dmesg | grep -i xid` says; the GPU comes back after a reset or a reboot"
            ),
            evidence={"silent_seconds": silent},
            explains=_ENDS,
        )

    def _ecc(self, gpu: GpuHistory, view: View) -> Iterator[Claim]:
        slow = gpu.slow
        if slow is None or gpu.slow_ts is None:
            return
        uuid, now = gpu.info.uuid, view.now_ts
        first = self._first.get(uuid, (None, None))
        counters = (slow.ecc_uncorrected, slow.ecc_corrected)
        # Lifetime counters are not zero on used cards: only what is added while we watch counts.
        known = tuple(
            count if start is None or (count is not None and count < start) else start
            for start, count in zip(first, counters, strict=True)
        )
        self._first[uuid] = (known[0], known[1])
        severities: tuple[tuple[str, Severity, int], ...] = (
            ("uncorrected", "critical", 0),
            ("corrected", "info", 1),
        )
        for kind, severity, place in severities:
            start, count = known[place], counters[place]
            if start is None or count is None or count <= start:
                continue
            began, newest, told = self._rise.get((uuid, kind), (gpu.slow_ts, gpu.slow_ts, 0))
            if count - start != told:
                newest = gpu.slow_ts
            self._rise[uuid, kind] = (began, newest, count - start)
            if kind == "corrected" and now - newest > view.thresholds[ECC_SHOWN]:
                continue
            yield Claim(
                code="ecc-error",
                target=f"gpu{gpu.info.index}",
                severity=severity,
                onset_ts=began,
                summary=msg(
                    "GPU {index}: {count} uncorrected memory errors",
                    index=gpu.info.index,
                    count=count - start,
                )
                if kind == "uncorrected"
                else msg(
                    "GPU {index}: {count} corrected memory errors", index=gpu.info.index, count=count - start
                ),
                cause=msg(
                    "The GPU's memory had errors that could not be corrected; the process they hit ends"
                )
                if kind == "uncorrected"
                else msg("The GPU's memory had errors that were corrected; nothing is lost"),
                remedy=msg(
                    "Restart from the last checkpoint and reset the GPU: nvidia-smi -r -i {index}; "
                    "again: replace the card",
                    index=gpu.info.index,
                )
                if kind == "uncorrected"
                else msg("Nothing to do now; many more of them announce a failing card"),
                evidence={"errors_since_start": float(count - start), "kind": kind},
                explains=("trainer-died",) if kind == "uncorrected" else (),
                clear_after_seconds=60.0,
            )

    def _remap(self, gpu: GpuHistory, view: View) -> Iterator[Claim]:
        slow = gpu.slow
        if slow is None or gpu.slow_ts is None:
            return
        uuid = gpu.info.uuid
        if slow.remapped_rows_pending is not None:
            self._pending_at_start.setdefault(uuid, slow.remapped_rows_pending)
        if not (slow.remapped_rows_failed or slow.remapped_rows_pending):
            return
        onset = self._remap_ts.setdefault(uuid, gpu.slow_ts)
        failed = bool(slow.remapped_rows_failed)
        severity: Severity = (
            "critical" if failed else "info" if self._pending_at_start.get(uuid) else "warning"
        )
        yield Claim(
            code="row-remap",
            target=f"gpu{gpu.info.index}",
            severity=severity,
            onset_ts=onset,
            summary=msg("GPU {index}: a bad memory row could not be replaced", index=gpu.info.index)
            if failed
            else msg("GPU {index}: a bad memory row waits to be replaced", index=gpu.info.index),
            cause=msg("There is no spare row left or the replacement failed")
            if failed
            else msg("The replacement takes effect at the next reset of the GPU"),
            remedy=msg("Ask for a replacement of the card")
            if failed
            else msg("Reset the GPU when the run is over: nvidia-smi -r -i {index}", index=gpu.info.index),
            clear_after_seconds=60.0,
        )

    def _xids(self, view: View) -> Iterator[Claim]:
        by_gpu: dict[int, list[GpuEvent]] = {}
        for event in view.history.events:
            if -5.0 <= view.now_ts - event.ts <= view.thresholds[EVENT_SHOWN]:
                by_gpu.setdefault(event.index, []).append(event)
        weight = {"critical": 0, "warning": 1, "info": 2}
        for index, events in by_gpu.items():
            # 43 and 45 follow other errors: the one before them is the cause.
            event = min(events, key=lambda e: (e.xid in FOLLOWERS, weight[meaning_of(e.xid).severity], e.ts))
            what = meaning_of(event.xid)
            yield Claim(
                code="xid",
                target=f"gpu{index}",
                severity=what.severity,
                onset_ts=event.ts,
                summary=msg(
                    "GPU {index}: Xid {xid}, {meaning}", index=index, xid=event.xid, meaning=what.meaning
                ),
                cause=msg("The driver reported an error; the process on the GPU goes on")
                if what.survives
                else msg("The driver reported an error; the process on the GPU is lost")
                if what.survives is False
                else msg("The driver reported an error; whether the process survives depends"),
                remedy=what.action,
                evidence={
                    "xid": float(event.xid),
                    "events": float(len(events)),
                    "all": ", ".join(str(e.xid) for e in events[-8:]),
                    "text": event.text or None,
                },
                explains=("trainer-died", "collective-hang", "stall") if what.survives is False else (),
                clear_after_seconds=1.0,
            )


def _last(gpu: GpuHistory, name: str) -> float | None:
    found = gpu.fast.latest(name)
    return None if found is None else found[1]


def _interval(gpu: GpuHistory) -> float:
    """Seconds between the newest readings of this GPU."""
    times = gpu.fast.times
    return (times[-1] - times[-9]) / 8 if len(times) > 8 else 0.0
