"""What speaks for a slow rank: since when, in how many seconds, by what steps and waiting for data."""

from __future__ import annotations

from itertools import islice, pairwise
from statistics import median

from yolomon.diagnosis.rules.base import View
from yolomon.diagnosis.seconds import Means

NOW_SECONDS = 30.0
FIRST_STEPS = 5  # choose kernels
STEPS_BEFORE = 200
STEPS_FOR_SLOW = 600
SLOW_SECONDS = 1.5
SLOW_TIMES = 5.0
HABIT = 3  # so many slow steps are no accident
STEPS_FOR_DATA = 60
MOST_SECONDS = 2 / 3  # of training in which a slow rank is seen to be slow
EDGE_SECONDS = 3.0  # of an epoch, at which the log's place and the GPUs' may differ
LONG_STEP_SECONDS = 1.0  # a second need not hold work of steps as long as this
WORK_SECONDS = 540.0  # looked at for the power of a GPU that does no work
NO_TENSOR_PERCENT = 0.5
NO_WORK_SHARE = 0.1  # of the range of power
LEAST_RANGE = 1.3  # most power over least, below which neither is that of no work


def seconds_of(means: dict[int, Means]) -> float:
    """How much training was looked at, on the GPU with the least of it."""
    return min(m.seconds for m in means.values())


def slow_throughout(view: View, slow: int, least_points: float, seconds: float, shift: float) -> bool:
    """Whether the GPU is less busy in most seconds of training; or, if not, also far from the epochs' edges.

    A rank that is slow is so in every step, or in some steps anywhere in the epoch. What only the first and
    the last seconds of epochs show is validation or saving that the log places wrongly; so are seconds in
    which a peer does no work at all, as all ranks make the same steps.
    """
    if not view.phases.known:
        return True
    workless = _workless_seconds(view, slow)
    by_second: dict[int, dict[int, float]] = {}
    times: dict[int, tuple[float, float]] = {}
    for index in view.job.gpu_indices:
        for row in view.seconds.training_rows(index, view.phases, view.now_ts, 150.0, shift=shift):
            if row.busy_percent is not None:
                second = int(row.start_ts)
                by_second.setdefault(second, {})[index] = row.busy_percent
                times[second] = (row.wide_from_ts or row.start_ts, row.end_ts)
    apart = [
        (second, min(busy for index, busy in row.items() if index != slow) - row[slow])
        for second, row in sorted(by_second.items())
        if len(row) == len(view.job.gpu_indices)
    ]
    once = _single_slow_steps(view)
    if once or not workless.isdisjoint(times):  # no habit of that rank: the other seconds must say the same
        apart = [
            (second, points)
            for second, points in apart
            if second not in workless
            and not any(times[second][0] < end and begin < times[second][1] for begin, end in once)
        ]
        if len(apart) < seconds / 2:
            return False
        latest = [points for _, points in apart[-round(seconds) :]]
        if sum(latest) / len(latest) < least_points:
            return False
    newest: list[tuple[int, float]] = []
    covered = 0.0
    for second, points in reversed(apart):
        newest.append((second, points))
        covered += max(1.0, times[second][1] - times[second][0])
        if covered >= seconds:
            break
    if not newest:
        return True
    if sum(points >= least_points / 2 for _, points in newest) >= MOST_SECONDS * len(newest):
        return True
    spans = view.phases.training_spans(view.now_ts - 160.0, view.now_ts)
    inner = [
        points
        for second, points in apart
        if any(
            begin + shift + EDGE_SECONDS <= times[second][0]
            and times[second][1] <= end + shift - EDGE_SECONDS
            for begin, end in spans
        )
    ]
    return len(inner) >= seconds and sum(inner) / len(inner) >= least_points


def _workless_seconds(view: View, slow: int) -> set[int]:
    """Seconds in which one of the peers does no work, by tensor activity or power; none where steps are long.

    A GPU that waits in a collective shows 100 % busy, no tensor work and the power of an idle one.
    """
    leader = view.phases.leader
    typical = None if leader is None else leader.typical_gap()
    if typical is None or typical >= LONG_STEP_SECONDS:
        return set()
    found: set[int] = set()
    for index in view.job.gpu_indices:
        if index == slow:
            continue
        rows = view.seconds.rows(index, view.now_ts - WORK_SECONDS, view.now_ts)
        if any((row.tensor_active_percent or 0.0) > NO_TENSOR_PERCENT for row in rows):
            found |= {
                int(row.start_ts)
                for row in rows
                if row.tensor_active_percent is not None and row.tensor_active_percent <= NO_TENSOR_PERCENT
            }
            continue
        watts = [row.power_watts for row in rows if row.power_watts is not None]
        if watts and max(watts) >= LEAST_RANGE * min(watts):
            least = min(watts) + NO_WORK_SHARE * (max(watts) - min(watts))
            found |= {
                int(row.start_ts) for row in rows if row.power_watts is not None and row.power_watts <= least
            }
    return found


def _single_slow_steps(view: View) -> list[tuple[float, float]]:
    """Steps of the newest training that took many times the usual, where they are only one or two."""
    leader = view.phases.leader
    typical = None if leader is None else leader.typical_gap()
    told = None if leader is None else view.history.train.ranks.get(leader.rank)
    if typical is None or told is None:
        return []
    found = []
    newest = list(islice(reversed(told.batches), STEPS_FOR_SLOW))
    for later, earlier in pairwise(newest):
        if later.ts < view.now_ts - 150.0:
            break
        if later.epoch == earlier.epoch and later.ts - earlier.ts > max(SLOW_SECONDS, SLOW_TIMES * typical):
            found.append((earlier.ts, later.ts))
    return found if len(found) < HABIT else []


def onset_of(view: View, slow: int) -> float:
    """The start of the unbroken run of training seconds in which the GPU was less busy than its peers."""
    indices = view.job.gpu_indices
    within = 540.0
    by_second: dict[int, list[tuple[int, float, float]]] = {}
    for index in indices:
        for row in view.seconds.training_rows(index, view.phases, view.now_ts, within):
            if row.busy_percent is not None:
                by_second.setdefault(int(row.start_ts), []).append((index, row.busy_percent, row.start_ts))
    onset = view.now_ts
    healthy = 0
    for second in sorted(by_second, reverse=True):
        values = by_second[second]
        if len(values) < len(indices):
            continue
        own = next(busy for index, busy, _ in values if index == slow)
        peers = min(busy for index, busy, _ in values if index != slow)
        if peers - own >= 10:
            onset, healthy = min(ts for _, _, ts in values), 0
        else:
            healthy += 1
            if healthy >= 3:
                break
    return onset


def steps_around(view: View, rank: int | None, onset_ts: float) -> tuple[float | None, float | None]:
    """Median step now and before the onset, seconds, of that rank or of the lowest that logs."""
    ranks = view.history.train.ranks
    history = ranks.get(rank) if rank is not None and rank in ranks else None
    if history is None:
        history = ranks[min(ranks)] if ranks else None
    if history is None:
        return None, None
    now, before = [], []
    since = max(onset_ts, view.now_ts - NOW_SECONDS)
    for record in islice(reversed(history.batches), max(len(history.batches) - FIRST_STEPS, 0)):
        step = record.roles.step_seconds
        if step is None or step != step:
            continue
        if record.ts > since:
            now.append(step)
        elif record.ts <= onset_ts:
            before.append(step)
            if len(before) >= STEPS_BEFORE:
                break
    return (median(now) if now else None, median(before) if len(before) >= 10 else None)


def data_shares(view: View) -> dict[int, float]:
    """Share of its step time that each rank waited for data in the last 30 s; 0 to 1."""
    shares = {}
    for rank, history in view.history.train.ranks.items():
        data = step = 0.0
        for record in islice(reversed(history.batches), STEPS_FOR_DATA):
            if record.ts < view.now_ts - 30:
                break
            roles = record.roles
            if roles.data_seconds is not None and roles.step_seconds and record.batch != 1:
                data += roles.data_seconds
                step += roles.step_seconds
        if step > 0:
            shares[rank] = data / step
    return shares
