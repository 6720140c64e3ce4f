"""How fast console logs become records: each format against decoding and cleaning the same pieces alone.

    python tests/benchmarks/console_formats.py

One run prints both, so the ratio does not depend on the machine.
"""

from __future__ import annotations

import time

from yolomon.trainlog.formats.base import Format
from yolomon.trainlog.formats.mmdet_text import MmdetText
from yolomon.trainlog.formats.paddle import Paddle
from yolomon.trainlog.formats.ultralytics_console import UltralyticsConsole
from yolomon.trainlog.formats.yolox import Yolox
from yolomon.trainlog.plain_text import plain

SIZE_BYTES = 3_000_000


def ultralytics(number: int) -> bytes:
    """A redraw of batch `number`, 224 to an epoch."""
    epoch, batch = divmod(number, 224)
    return (
        f"\x1b[K {epoch + 1:>4}/900      4.02G     0.{number % 9999:04d}      5.321      1.449         "
        f"43        640: "
        f"{batch * 100 // 224}% ━━━━━━────── {batch + 1}/224 7.8it/s 13.0s<26.0s"
    ).encode()


def yolox(number: int) -> bytes:
    """Iteration line `number`."""
    epoch, batch = divmod(number, 99)
    return (
        "2023-05-25 09:08:45.291 | INFO     | yolox.core.trainer:after_iter:282 - "
        f"epoch: {epoch + 1}/900, iter: {batch + 1}/99, gpu mem: 20839Mb, mem: 46.8Gb, iter_time: 1.599s, "
        "data_time: 0.003s, total_loss: 4.2, iou_loss: 2.2, l1_loss: 0.0, conf_loss: 1.4, cls_loss: 0.6, "
        "lr: 1.634e-04, size: 640, ETA: 8:52:37"
    ).encode()


def paddle(number: int) -> bytes:
    """Iteration line `number`."""
    return (
        f"[06/30 17:42:10] ppdet.engine INFO: Epoch: [{number // 268}] [{number % 268}/268] "
        f"learning_rate: 0.000242 "
        "loss: 2.778925 loss_cls: 1.312054 loss_iou: 0.352882 loss_dfl: 1.110403 eta: 7:12:42 "
        "batch_cost: 1.4636 "
        "data_cost: 1.1001 ips: 10.9318 images/s"
    ).encode()


def mmdet(number: int) -> bytes:
    """Iteration line `number`."""
    epoch, batch = divmod(number, 99)
    return (
        f"2023/05/24 20:17:36 - mmengine - INFO - Epoch(train)  [{epoch + 1}][{batch + 1:>4}/99]  "
        "lr: 9.0530e-09  eta: 8 days, 4:44:34  time: 33.6969  data_time: 31.8698  memory: 17929  loss: 7.6  "
        "loss_cls: 3.1140  loss_bbox: 2.1904  loss_obj: 2.3299"
    ).encode()


def measure(name: str, form: Format, pieces: list[bytes]) -> None:
    """Print the throughput of a format and of cleaning alone."""
    size = sum(map(len, pieces)) / 1e6
    begun = time.perf_counter()
    for piece in pieces:
        plain(piece)
    cleaned = time.perf_counter() - begun
    parser = form.parser("log")
    begun = time.perf_counter()
    records = sum(len(list(parser.feed(piece, 1.0))) for piece in pieces)
    parsed = time.perf_counter() - begun
    print(
        f"{name:20} {size / parsed:6.1f} MB/s  {records / parsed:9.0f} records/s  "
        f"300 kB in {0.3 / size * parsed * 1000:5.1f} ms  cleaning alone {size / cleaned:6.1f} MB/s"
    )


def main() -> None:
    """Measure each format on about 3 MB."""
    for name, form, line in (
        ("ultralytics-console", UltralyticsConsole, ultralytics),
        ("yolox", Yolox, yolox),
        ("paddle", Paddle, paddle),
        ("mmdet-text", MmdetText, mmdet),
    ):
        count = SIZE_BYTES // len(line(0))
        measure(name, form, [line(number) for number in range(count)])


if __name__ == "__main__":
    main()
