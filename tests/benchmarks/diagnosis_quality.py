"""How right the diagnosis is, and what it costs.

usage: python -m tests.benchmarks.diagnosis_quality [--hours 24] [--quick] [--traces FOLDER]

Prints recall over every simulated fault (and over the real recordings in many variations, where they lie
beside the repository), false alarms in simulated healthy hours, the cost of a pass over 8 GPUs, and how long
an hour of 2 GPUs takes. Exit status 1 when recall is below 95 %, there is more than one false alarm in 24
healthy hours, a pass takes more than 5 ms, or the hour takes more than 10 s.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from tests.synthetic.labelled import Labelled, score
from tests.synthetic.plan import H200, Plan
from tests.synthetic.scenarios import faulty, healthy, simulate
from tests.synthetic.variants import variants
from yolomon.diagnosis.engine import Engine
from yolomon.diagnosis.run_recording import diagnose

LEAST_RECALL = 0.95
MOST_FALSE_A_DAY = 1.0
MOST_PASS_MS = 5.0
MOST_HOUR_SECONDS = 10.0


class Tally:
    """Adds up scores and prints what went wrong."""

    def __init__(self) -> None:
        self.found = self.missed = self.false = self.runs = 0
        self.seconds = 0.0
        self.delays: list[float] = []

    def add(self, runs: Iterable[Labelled]) -> Tally:
        for run in runs:
            result = score(run)
            self.runs += 1
            self.found += len(result.found)
            self.missed += len(result.missed)
            self.false += len(result.false_alarms)
            self.seconds += result.seconds
            self.delays += result.delays
            for text in (
                *(f"MISSED {m}" for m in result.missed),
                *(f"FALSE {f}" for f in result.false_alarms),
            ):
                print(f"  {run.name}: {text}", flush=True)
        return self

    @property
    def recall(self) -> float:
        asked = self.found + self.missed
        return self.found / asked if asked else 1.0

    def line(self) -> str:
        delay = f", median delay {statistics.median(self.delays):.0f} s" if self.delays else ""
        return (
            f"{self.runs} runs, {self.seconds / 3600:.1f} h: {self.found} of {self.found + self.missed} "
            f"truths "
            f"({100 * self.recall:.1f} %), {self.false} false alarms{delay}"
        )


def pass_cost() -> tuple[float, float]:
    """Milliseconds a second of 8 GPUs (8 ranks, 1 Hz) costs in all, and judging alone."""
    run = simulate(
        Plan(name="cost", seed=1, ranks=8, gpu=H200, seconds=600.0, step_seconds=0.25, workers=8, batches=300)
    )
    engine = Engine()
    checks: list[float] = []
    check = engine.check

    def timed(now_ts: float) -> None:
        begin = time.process_time()
        check(now_ts)
        checks.append(time.process_time() - begin)

    engine.check = timed  # type: ignore[method-assign]
    begin = time.process_time()
    for item in run.items:
        engine.observe(item)
    return 1000 * (time.process_time() - begin) / run.seconds, 1000 * statistics.mean(checks)


def hour_cost() -> float:
    """Seconds that an hour of 2 GPUs at 1 Hz with 10 steps a second takes."""
    run = simulate(
        Plan(
            name="hour", seed=2, ranks=2, gpu=H200, seconds=3600.0, step_seconds=0.1, batches=500, epochs=1000
        )
    )
    begin = time.process_time()
    diagnose(run.items)
    return time.process_time() - begin


def main() -> int:
    """Print all and judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument(
        "--traces", type=Path, default=Path(__file__).resolve().parents[3] / "shared" / "traces"
    )
    options = parser.parse_args()
    wrong = []

    simulated = Tally().add(faulty(thorough=not options.quick))
    print(f"simulated faults: {simulated.line()}")
    real = Tally()
    if options.traces.is_dir():
        real.add(variants(options.traces, thorough=not options.quick))
        print(f"real recordings, varied: {real.line()}")
    together = (simulated.found + real.found) / max(
        simulated.found + real.found + simulated.missed + real.missed, 1
    )
    if together < LEAST_RECALL:
        wrong.append(f"recall {100 * together:.1f} %")
    well = Tally().add(healthy(options.hours))
    a_day = well.false * 24 / max(well.seconds / 3600, 1e-9)
    print(f"healthy: {well.line()}; {a_day:.2f} in 24 h")
    if a_day > MOST_FALSE_A_DAY:
        wrong.append(f"{a_day:.2f} false alarms in 24 h")
    whole_ms, judging_ms = pass_cost()
    print(f"8 GPUs, 8 ranks: {whole_ms:.2f} ms a second, {judging_ms:.2f} ms of it the pass (CPU time)")
    if judging_ms > MOST_PASS_MS:
        wrong.append(f"{judging_ms:.2f} ms a pass")
    hour = hour_cost()
    print(f"an hour of 2 GPUs, 10 steps a second: {hour:.1f} s (CPU time)")
    if hour > MOST_HOUR_SECONDS:
        wrong.append(f"{hour:.1f} s for an hour")
    print("as it should be" if not wrong else "WRONG: " + "; ".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
