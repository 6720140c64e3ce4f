"""stall: neither steps nor work."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from yolomon.diagnosis.forecast import is_complete
from yolomon.diagnosis.phases import TRAINING
from yolomon.diagnosis.rules.base import Claim, View
from yolomon.diagnosis.rules.progress import EFFECTS, Silence, job_cpu_percent, silence
from yolomon.diagnosis.thresholds import declare
from yolomon.messages import Message, msg
from yolomon.model import Item
from yolomon.units import duration

WORK = declare(
    "stall.busy-percent", 10.0, "%", "busy time of the job's GPUs above which it works, only its log is late"
)
CRITICAL = declare("stall.critical-seconds", 120.0, "s", "without a step before a stall is critical")


class Stall:
    """No step for many times the usual and no work on the GPUs, within an epoch or long after one.

    Not called so: validation, checkpoint, epoch turn (their own, longer patience), a log that is written in
    blocks while the GPUs go on, the start-up while the process works (caching), a rank that spins
    (collective-hang says that), a run whose last epoch is complete.
    """

    codes: ClassVar[tuple[str, ...]] = ("stall",)

    def observe(self, item: Item, view: View) -> None:
        """Needs nothing but the history."""

    def check(self, view: View) -> Iterable[Claim]:
        """At most one claim, on the run."""
        quiet = silence(view)
        if quiet is None or not quiet.overdue:
            return []
        if quiet.phase not in TRAINING and is_complete(view.history.train):
            return []  # a notebook's kernel lives on after the last epoch
        since = max(quiet.since_ts + 2.0, view.now_ts - 30)
        busy: list[float] = []
        for index in view.job.gpu_indices:
            means = view.seconds.means(index, since, view.now_ts)
            if means is not None and means.busy_percent is not None:
                busy.append(means.busy_percent)
        if busy and max(busy) > view.thresholds[WORK]:
            return []
        if not busy and quiet.seconds < 3 * quiet.limit_seconds:
            return []  # the log alone is a weak witness
        return [self._claim(view, quiet, busy)]

    @staticmethod
    def _claim(view: View, quiet: Silence, busy: list[float]) -> Claim:
        pid = next((m.pid for m in view.job.members if m.pid is not None), None)
        cpu = None if pid is None else job_cpu_percent(view, pid, quiet.since_ts + 1)
        process = None if pid is None else view.history.processes.by_pid.get(pid)
        status = None if process is None else process.sample.status
        cause: Message
        remedy: Message
        if status == "stopped":
            cause = msg("the trainer's process is stopped by a signal (Ctrl-Z, kill -STOP)")
            remedy = msg("let it go on: kill -CONT {pid}", pid=pid)
        elif status == "disk-sleep":
            cause = msg("the trainer waits for a disk or a network file system")
            remedy = msg("look at the mount that holds the data set or the run: df, dmesg, mount")
        elif cpu is not None and cpu >= 80:
            cause = msg(
                "the trainer's process computes on the CPU ({cpu:.0f} % of a core), the GPU does nothing",
                cpu=cpu,
            )
            remedy = msg("see what it does: py-spy dump --pid {pid}", pid=pid)
        elif cpu is not None:
            cause = msg(
                "the trainer's process sleeps ({cpu:.0f} % of a core): it waits for something "
                "that does not come",
                cpu=cpu,
            )
            remedy = msg(
                "see where it waits: py-spy dump --pid {pid}; with loader workers, try workers=0 to find out",
                pid=pid,
            )
        else:
            cause = msg("what the trainer's process does cannot be seen")
            remedy = msg("see where it stands with py-spy dump on its process")
        long = quiet.seconds > view.thresholds[CRITICAL] and quiet.seconds > 2 * quiet.limit_seconds
        return Claim(
            code="stall",
            target="run",
            severity="critical" if long else "warning",
            onset_ts=quiet.since_ts + (quiet.typical_seconds or 0.0),
            summary=msg(
                "no step for {time}; usually one every {usual}",
                time=duration(quiet.seconds),
                usual=duration(quiet.typical_seconds),
            )
            if quiet.typical_seconds is not None
            else msg("no step for {time}", time=duration(quiet.seconds)),
            cause=cause,
            remedy=remedy,
            evidence={
                "seconds_without_step": round(quiet.seconds, 1),
                "usual_step_seconds": None
                if quiet.typical_seconds is None
                else round(quiet.typical_seconds, 3),
                "limit_seconds": round(quiet.limit_seconds, 1),
                "phase": quiet.phase,
                "gpu_busy_percent": round(max(busy), 1) if busy else None,
                "process_cpu_percent": None if cpu is None else round(cpu, 1),
                "process_status": status,
                "last_step": view.history.train.step,
            },
            signals=("utilization_percent", "step_seconds"),
            explains=(*EFFECTS, "log-silent"),
            confidence="high" if busy and cpu is not None else "medium" if busy else "low",
            unseen=() if busy else (msg("no reading of the job's GPUs: only the log tells"),),
            raise_after_seconds=0.0,
            clear_after_seconds=5.0,
        )
