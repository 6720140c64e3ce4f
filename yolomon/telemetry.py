"""`yolomon.telemetry/1`: the model as JSON, one object a line.

The first line is a header (static facts), then samples, events, statuses and, in our own recordings, the
trainer's records, each with its `type`. In a sample the fields of the slow tier lie beside the fast ones;
a field that is absent was not read, null was not available.
"""

from __future__ import annotations

from typing import Any

import msgspec

from yolomon.model import (
    CurveBlock,
    Finding,
    GpmSample,
    GpuEvent,
    GpuSample,
    GpuSlow,
    Header,
    HostSample,
    Item,
    LogStatus,
    ProcessSample,
    SourceStatus,
    Telemetry,
    TrainRecord,
)

SCHEMA = "yolomon.telemetry/1"
_SLOW = frozenset(GpuSlow.__struct_fields__)
_FAST = frozenset(GpuSample.__struct_fields__)
_TYPES: dict[str, type[Item]] = {
    "event": GpuEvent,
    "status": SourceStatus,
    "train": TrainRecord,
    "log": LogStatus,
    "curve": CurveBlock,
}
_NAMES: dict[type[Any], str] = {kind: name for name, kind in _TYPES.items()} | {
    Header: "header",
    Telemetry: "sample",
    Finding: "finding",
}
_NUMBERS = frozenset(("own_ts", "numbers", "roles", "features"))
_NON_FINITE = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


class TelemetryError(ValueError):
    """A line that is not telemetry: not JSON, another schema, a field of the wrong kind."""


def encode(item: Item | Finding) -> bytes:
    """One line of JSON, without the newline. NaN and infinity become the strings "NaN", "Infinity"."""
    body: dict[str, Any] = {"type": _NAMES[type(item)]}
    if isinstance(item, Header):
        body["schema"] = SCHEMA
    plain = msgspec.to_builtins(item)
    if isinstance(item, Telemetry):
        for gpu, source in zip(plain.get("gpus", ()), item.gpus, strict=True):
            gpu.pop("slow", None)
            if source.slow is not None:
                gpu.update(msgspec.to_builtins(source.slow))
    if isinstance(item, TrainRecord):
        plain = _spell_non_finite(plain)
    body.update(plain)
    return msgspec.json.encode(body)


def decode(line: bytes | str) -> Item | Finding | None:
    """The item of one line; None for a type that this version does not know.

    Raises:
        TelemetryError: the line is not JSON, not an object, of another schema, or has a wrong field.
    """
    try:
        body = msgspec.json.decode(line)
        if not isinstance(body, dict):
            raise TelemetryError("not an object")
        kind = body.pop("type", None)
        if kind == "sample":
            return _sample(body)
        if kind == "header":
            if body.pop("schema", SCHEMA) != SCHEMA:
                raise TelemetryError("another schema")
            return msgspec.convert(body, Header, strict=False)
        if kind == "train":
            for key in _NUMBERS & body.keys():  # nowhere else: a model may be named "NaN"
                body[key] = _read_non_finite(body[key])
            return msgspec.convert(body, TrainRecord, strict=False)
        if kind == "finding":
            return msgspec.convert(body, Finding, strict=False)
        known = _TYPES.get(kind) if isinstance(kind, str) else None
        return None if known is None else msgspec.convert(body, known, strict=False)
    except (msgspec.MsgspecError, TypeError, KeyError) as error:
        raise TelemetryError(str(error)) from error


def _sample(body: dict[str, Any]) -> Telemetry:
    gpus = []
    for raw in body.get("gpus") or ():
        if not isinstance(raw, dict):
            raise TelemetryError("a GPU that is no object")
        fast = {k: v for k, v in raw.items() if k in _FAST}
        gpm = fast.pop("gpm", None)
        slow = {k: v for k, v in raw.items() if k in _SLOW}
        gpus.append(
            msgspec.convert(
                fast
                | {
                    "slow": msgspec.convert(slow, GpuSlow, strict=False) if slow else None,
                    "gpm": msgspec.convert(gpm, GpmSample, strict=False) if gpm is not None else None,
                },
                GpuSample,
                strict=False,
            )
        )
    host = body.get("host")
    processes = body.get("processes")
    return Telemetry(
        ts=msgspec.convert(body["ts"], float),
        gpus=tuple(gpus),
        host=None if host is None else msgspec.convert(host, HostSample, strict=False),
        processes=None
        if processes is None
        else msgspec.convert(processes, tuple[ProcessSample, ...], strict=False),
    )


def _spell_non_finite(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, float):
        if value != value:
            return "NaN"
        if value in (float("inf"), float("-inf")):
            return "Infinity" if value > 0 else "-Infinity"
        return value
    if isinstance(value, dict):
        return {k: _spell_non_finite(v) for k, v in value.items()}
    return value


def _read_non_finite(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        return _NON_FINITE.get(value, value)
    if isinstance(value, dict):
        return {k: _read_non_finite(v) for k, v in value.items()}
    return value
