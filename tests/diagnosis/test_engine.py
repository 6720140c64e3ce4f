"""The engine: hysteresis in the samples' own time, onset, cause hides effect, gaps, silencing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import pytest

from tests.diagnosis.scene import Scene
from yolomon.diagnosis.engine import Engine
from yolomon.diagnosis.rules import ALL_RULES
from yolomon.diagnosis.rules.base import Claim, View
from yolomon.diagnosis.run_recording import diagnose
from yolomon.messages import msg
from yolomon.model import Item, Severity, Telemetry

START = 1000.0


class Says:
    """A rule that claims one thing while `when(ts)` holds."""

    codes: ClassVar[tuple[str, ...]] = ("a",)

    def __init__(
        self,
        spans: Iterable[tuple[float, float]],
        code: str = "a",
        target: str = "gpu0",
        *,
        severity: Severity = "warning",
        hold: float = 0.0,
        clear: float = 10.0,
        explains: tuple[str, ...] = (),
    ) -> None:
        self.spans, self.code, self.target = list(spans), code, target
        self.severity, self.hold, self.clear, self.explains = severity, hold, clear, explains

    def observe(self, item: Item, view: View) -> None:
        pass

    def check(self, view: View) -> Iterable[Claim]:
        for begin, end in self.spans:
            if START + begin <= view.now_ts < START + end:
                yield Claim(
                    code=self.code, target=self.target, severity=self.severity, onset_ts=START + begin,
                    summary=msg("{what}", what=self.code), cause=msg(""), remedy=msg(""),
                    explains=self.explains, raise_after_seconds=self.hold, clear_after_seconds=self.clear,
                )  # fmt: skip


def run(*rules: Says, seconds: int = 60, skip: tuple[int, int] = (0, 0), each: float = 1.0) -> Engine:
    engine = Engine(rules=list(rules))
    for step in range(int(seconds / each) + 1):
        ts = START + step * each
        if not skip[0] < ts - START < skip[1]:
            engine.observe(Telemetry(ts=ts))
    return engine


def times(engine: Engine) -> list[tuple[str, float, float | None]]:
    return [
        (f.code, f.raised_ts - START, None if f.cleared_ts is None else f.cleared_ts - START)
        for f in engine.all_findings()
    ]


def test_a_claim_becomes_a_finding_once_it_held() -> None:
    engine = run(Says([(10, 60)], hold=5))
    assert times(engine) == [("a", 15.0, None)]
    assert engine.all_findings()[0].onset_ts == START + 10


def test_what_holds_too_shortly_is_never_said() -> None:
    assert times(run(Says([(10, 14), (20, 24), (30, 34)], hold=5))) == []


def test_it_is_cleared_after_it_was_gone_for_longer() -> None:
    assert times(run(Says([(10, 20)], clear=10))) == [("a", 10.0, 29.0)]


def test_it_survives_a_short_pause_and_may_come_again_after_it_cleared() -> None:
    assert times(run(Says([(5, 10), (15, 20), (40, 60)], clear=10))) == [("a", 5.0, 29.0), ("a", 40.0, None)]


@pytest.mark.parametrize("each", [0.2, 1.0])
def test_the_sampling_rate_changes_nothing(each: float) -> None:
    assert times(run(Says([(10, 30)], hold=5), each=each)) == [("a", 15.0, 39.0)]


def test_a_gap_in_the_data_resets_what_was_pending_and_clears_nothing() -> None:
    assert times(run(Says([(10, 60)], hold=5), skip=(12, 40))) == [("a", 45.0, None)]
    assert times(run(Says([(5, 14)], clear=10), skip=(14, 40))) == [("a", 5.0, 49.0)]


def test_a_cause_hides_its_effect_while_it_stands() -> None:
    cause = Says([(10, 30)], "cause", clear=5, explains=("effect",))
    effect = Says([(12, 120)], "effect")
    engine = run(cause, effect, seconds=25)
    assert [f.code for f in engine.findings()] == ["cause"]
    assert [f.code for f in engine.all_findings()] == ["cause"]
    assert [f.code for f in run(cause, effect, seconds=100).findings()] == ["effect"]


def test_an_effect_that_ends_soon_after_its_cause_is_never_told() -> None:
    cause, effect = Says([(5, 30)], "cause", explains=("effect",)), Says([(8, 50)], "effect")
    assert [code for code, _, _ in times(run(cause, effect, seconds=120))] == ["cause"]


def test_an_effect_that_outlives_its_cause_is_told_then() -> None:
    cause, effect = Says([(5, 30)], "cause", explains=("effect",)), Says([(8, 200)], "effect")
    (_, raised, _) = times(run(cause, effect, seconds=120))[1]
    assert raised == pytest.approx(30 + 10 + 30, abs=2)


def test_a_cause_hides_at_its_own_target_and_with_a_star_anywhere() -> None:
    elsewhere = Says([(10, 60)], "effect", "gpu1")
    assert len(run(Says([(5, 60)], "c", explains=("effect",)), elsewhere).findings()) == 2
    assert len(run(Says([(5, 60)], "c", explains=("effect@*",)), elsewhere).findings()) == 1
    assert len(run(Says([(5, 60)], "c", "run", explains=("effect",)), elsewhere).findings()) == 1


def test_the_worst_comes_first() -> None:
    engine = run(
        Says([(1, 60)], "i", severity="info"), Says([(9, 60)], "c", severity="critical"), Says([(5, 60)], "w")
    )
    assert [f.code for f in engine.findings()] == ["c", "w", "i"]


def test_changes_are_told_once() -> None:
    engine = run(Says([(5, 10)], clear=5))
    assert [c.kind for c in engine.changes()] == ["raised", "cleared"]
    assert engine.changes() == []


def test_silencing_by_code_and_target() -> None:
    engine = run(Says([(5, 99)], "a", "gpu0"), Says([(5, 99)], "a", "gpu1"))
    engine.silence("a", "gpu1")
    assert [f.target for f in engine.findings()] == ["gpu0"]
    assert [f.silenced for f in engine.findings(silenced=True)] == [False, True]
    engine.silence("a", "gpu1", on=False)
    assert len(engine.findings()) == 2
    engine.silence("a")
    assert engine.findings() == []


def test_a_clock_that_is_set_back_does_not_stop_it() -> None:
    engine = Engine(rules=[Says([(-500, 600)])])
    for ts in (START + 400, START + 401, START + 402, START - 100, START - 99, START - 98):
        engine.observe(Telemetry(ts=ts))
    assert engine.findings()


def test_the_same_items_give_the_same_findings() -> None:
    scene = Scene(2).start().train(30)
    scene.gpus[1].busy = 20.0
    scene.train(30)
    assert diagnose(scene.items) == diagnose(scene.items)


def test_no_item_at_all() -> None:
    engine = Engine()
    engine.finish()
    assert engine.findings() == []


def test_every_rule_names_codes_and_no_two_rules_the_same() -> None:
    codes = [code for make in ALL_RULES for code in make().codes]
    assert len(codes) == len(set(codes))
