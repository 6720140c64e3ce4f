"""`yolomon.telemetry/1`: every item comes back as it was written."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yolomon.messages import msg
from yolomon.model import (
    CurveBlock,
    Finding,
    GpmSample,
    GpuEvent,
    GpuInfo,
    GpuProcess,
    GpuSample,
    GpuSlow,
    Header,
    HostInfo,
    HostSample,
    Item,
    LogStatus,
    ProcessSample,
    Roles,
    RunInfo,
    SourceStatus,
    Telemetry,
    TrainRecord,
)
from yolomon.telemetry import SCHEMA, TelemetryError, decode, encode

EXAMPLES: list[Item | Finding] = [
    Header(
        ts=1.5,
        host=HostInfo(cores=32, memory_limit_bytes=1 << 34, container="docker", pid_namespace_shared=False),
        gpus=(GpuInfo(index=1, uuid="GPU-1", name="NVIDIA H200", memory_api="v2", gpm_supported=True),),
    ),
    Telemetry(
        ts=2.25,
        gpus=(
            GpuSample(
                index=0,
                utilization_percent=99.0,
                utilization_samples_percent=(1.0, 2.0),
                slow=GpuSlow(processes=(GpuProcess(pid=7, memory_used_bytes=5),), energy_joules=1.5),
                gpm=GpmSample(sm_active_percent=12.5),
            ),
            GpuSample(index=1, state="lost", state_since_ts=1.0, error="GPU is lost"),
        ),
        host=HostSample(cpu_percent=(1.0, 2.0), load_average=(0.1, 0.2, 0.3), oom_kills=0),
        processes=(ProcessSample(pid=7, name="pt_data_worker", rank=0, cuda_visible_devices="0,1"),),
    ),
    Telemetry(ts=3.0, processes=()),
    GpuEvent(ts=4.0, index=0, xid=79, text="GPU has fallen off the bus"),
    SourceStatus(
        ts=5.0, source="nvml", ok=False, reason="no-driver", cause=msg("No {x}", x="driver"), errors=3
    ),
    TrainRecord(
        ts=6.0,
        kind="batch",
        rank=1,
        numbers={"loss": float("inf"), "lr": 0.1},
        roles=Roles(loss=float("-inf"), losses={"box": 1.0}),
        run=RunInfo(model="yolo11x", epochs=100),
        features={"model.9": {"mean": 0.5, "std": float("inf")}},
        text="NaN",
    ),
    CurveBlock(ts=6.5, source="train.jsonl", name="loss", minimum=0.5, maximum=2.0, count=40, non_finite=1),
    LogStatus(ts=7.0, source="train.jsonl", state="following", format="jsonl", broken_lines=2),
    Finding(
        code="stall",
        severity="critical",
        target="run",
        onset_ts=1.0,
        raised_ts=2.0,
        summary=msg("No step for {seconds} s", seconds=12.5),
        evidence={"seconds": 12.5, "phase": "train", "none": None},
        unseen=(msg("no loader times"),),
    ),
]


@pytest.mark.parametrize("item", EXAMPLES, ids=lambda item: type(item).__name__)
def test_round_trip(item: Item | Finding) -> None:
    line = encode(item)
    assert b"\n" not in line
    assert decode(line) == item
    json.loads(line)  # strict JSON, for other programs


def test_nan_is_a_value_of_the_trainers_and_strict_json() -> None:
    record = TrainRecord(ts=1.0, kind="batch", numbers={"loss": float("nan")}, roles=Roles(loss=float("nan")))
    line = encode(record)
    json.loads(line, parse_constant=lambda name: pytest.fail(f"bare {name}"))
    back = decode(line)
    assert isinstance(back, TrainRecord)
    assert math.isnan(back.numbers["loss"])
    assert back.roles.loss is not None and math.isnan(back.roles.loss)


def test_words_that_look_like_numbers_stay_words() -> None:
    record = TrainRecord(ts=1.0, kind="start", text="Infinity", source="NaN", run=RunInfo(model="Infinity"))
    assert decode(encode(record)) == record


def test_header_names_the_schema_and_another_one_is_refused() -> None:
    assert json.loads(encode(EXAMPLES[0]))["schema"] == SCHEMA
    with pytest.raises(TelemetryError, match="another schema"):
        decode('{"type":"header","schema":"yolomon.telemetry/9","ts":1.0}')


def test_slow_fields_lie_beside_the_fast_ones() -> None:
    gpu = json.loads(encode(EXAMPLES[1]))["gpus"][0]
    assert gpu["energy_joules"] == 1.5
    assert gpu["processes"] == [{"pid": 7, "memory_used_bytes": 5}]
    assert "slow" not in gpu


def test_absent_is_not_read_and_null_not_available() -> None:
    absent = decode('{"type":"sample","ts":1,"gpus":[{"index":0,"utilization_percent":5}]}')
    null = decode(
        '{"type":"sample","ts":1,"gpus":[{"index":0,"utilization_percent":null,"energy_joules":null}]}'
    )
    assert isinstance(absent, Telemetry) and isinstance(null, Telemetry)
    assert absent.gpus[0].slow is None
    assert null.gpus[0].slow == GpuSlow(energy_joules=None)
    assert null.gpus[0].utilization_percent is None


def test_unknown_types_and_fields_are_for_later_versions() -> None:
    assert decode('{"type":"hologram","ts":1}') is None
    item = decode('{"type":"event","ts":1,"index":0,"xid":48,"new_field":true}')
    assert item == GpuEvent(ts=1.0, index=0, xid=48)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b"3",
        b"{",
        b'{"type":"sample"}',
        b'{"type":"sample","ts":null}',
        b'{"type":"sample","ts":"soon"}',
        b'{"type":"sample","ts":1,"gpus":[5]}',
        b'{"type":"sample","ts":1,"gpus":5}',
        b'{"type":"sample","ts":1,"gpus":[{"index":"x"}]}',
        b'{"type":"event","ts":1}',
        b'{"type":["sample"],"ts":1, "x":',
        b"\xff\xfe\x00",
    ],
)
def test_what_is_no_telemetry(line: bytes) -> None:
    with pytest.raises(TelemetryError):
        decode(line)


finite = st.floats(allow_nan=False, allow_infinity=False)
number = finite | st.sampled_from([float("inf"), float("-inf")])
words = st.text(max_size=20)


@settings(max_examples=60, deadline=None)
@given(
    ts=finite,
    numbers=st.dictionaries(words, number, max_size=5),
    losses=st.dictionaries(words, number, max_size=3),
    features=st.none() | st.dictionaries(words, st.dictionaries(words, number, max_size=3), max_size=3),
    text=words,
    source=words,
    model=st.none() | words,
    epoch=st.none() | st.integers(-(2**40), 2**40),
)
def test_any_record_comes_back(
    ts: float,
    numbers: dict[str, float],
    losses: dict[str, float],
    features: dict[str, dict[str, float]] | None,
    text: str,
    source: str,
    model: str | None,
    epoch: int | None,
) -> None:
    record = TrainRecord(
        ts=ts,
        kind="epoch",
        numbers=numbers,
        roles=Roles(losses=losses),
        features=features,
        text=text,
        source=source,
        run=RunInfo(model=model),
        epoch=epoch,
    )
    assert decode(encode(record)) == record


optional_int = st.none() | st.integers(0, 2**60)


@settings(max_examples=60, deadline=None)
@given(
    ts=finite,
    used=optional_int,
    util=st.none() | finite,
    samples=st.lists(finite, max_size=4),
    energy=finite,
    cores=st.none() | st.lists(finite, max_size=4),
    name=words,
)
def test_any_sample_comes_back(
    ts: float,
    used: int | None,
    util: float | None,
    samples: list[float],
    energy: float,
    cores: list[float] | None,
    name: str,
) -> None:
    item = Telemetry(
        ts=ts,
        gpus=(
            GpuSample(
                index=0,
                memory_used_bytes=used,
                utilization_percent=util,
                utilization_samples_percent=tuple(samples),
                slow=GpuSlow(energy_joules=energy),
            ),
        ),
        host=HostSample(cpu_percent=None if cores is None else tuple(cores)),
        processes=(ProcessSample(pid=1, name=name, rss_bytes=used),),
    )
    assert decode(encode(item)) == item


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | finite | words,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
        max_leaves=8,
    ),
    st.sampled_from(["sample", "header", "train", "status", "event", "log", "finding", "other"]),
)
def test_any_json_is_an_item_or_a_telemetry_error(body: Any, kind: str) -> None:
    whole = {"type": kind, "ts": 1.0, "gpus": body, "numbers": body, "host": body, "x": body}
    for value in (body, whole):
        try:
            decode(msgspec.json.encode(value))
        except TelemetryError:
            continue
