"""Whatever a log holds, a format never raises: it gives records, broken lines, or nothing."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yolomon.model import TrainRecord
from yolomon.trainlog.formats.base import BrokenLine, Format, Head
from yolomon.trainlog.formats.registry import formats

LINES = tuple(
    line.encode()
    for line in (
        "epoch,time,train/box_loss,metrics/mAP50(B),val/box_loss,lr/pg0",
        "1,3.5,1.5,0.5,1.4,0.01",
        "epoch,step,train/loss,val/mAP_50_95",
        "0,49,,0.5",
        "fitness,lr0,momentum",
        "0.5,0.01,0.9",
        '{"iteration": 1, "fitness": 0.5, "hyperparameters": {"lr0": 0.01}}',
        "0/99 3.97G 0.09 0.02 0.03 0.14 193 640 0.5 0.6 0.4 0.2 0.11 0.03 0.02",
        "      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size",
        "\x1b[K      1/100      2.31G      1.5       nan       1.25         42        640: 20% ━━──── "
        "1/5 2.0it/s 0.2s<2.0s",
        "      1/100      2.31G      1.5       2.25       1.25         42        640:  29%|██▉  | 4/14 "
        "[00:01<00:04,  2.00it/s]",
        "                   all          6         12        0.9        0.8        0.7        0.6",
        "Starting training for 3 epochs...",
        "3 epochs completed in 0.1 hours.",
        "2021-12-06 19:42:45.500 | INFO | yolox.core.trainer:after_iter:282 - epoch: 2/300, iter: 10/18, "
        "gpu mem: 8Mb, "
        "iter_time: 0.5s, total_loss: 12.3, lr: 1.2e-05, size: 640, ETA: 1 day, 2:03:04",
        " Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 0.233",
        "[06/24 11:20:46] ppdet.engine INFO: Epoch: [0] [ 20/134] learning_rate: 0.0002 loss: 57.5 eta: "
        "7:39:28 ips: 2.7 images/s",
        "2020-05-08 18:44:23,494 - mmdet - INFO - Epoch [1][1200/7517]\tlr: 2.0e-02, eta: 1 day, "
        "4:44:04, time: 0.5, loss: 0.4",
        " 1400: 6.294297, 7.920310 avg loss, 0.001000 rate, 3.200000 seconds, 89600 images, 24.5 hours left",
        "{'loss': 1.25, 'grad_norm': 3.5, 'learning_rate': 4.9e-05, 'epoch': 0.5}",
        "  5%|▌    | 500/10000 [02:00<38:00,  4.17it/s]",
        "Epoch 0 (1/300)  - Train_PPYoloELoss/loss: 1.25\tValid_mAP@0.50: 0.3",
        "SUMMARY OF EPOCH 1",
        "     Epoch        lr  iou_loss  dfl_loss  cls_loss",
        "       0/4   0.00062       1.25        0       2.25: 100%|████| 40/40 [00:20<00:00,  2.00it/s]",
        "Epoch: 0 | mAP@0.5: 0.0341 | mAP@0.50:0.95: 0.0061",
        "2021-04-29 06:19:48,726-INFO: iter: 1400, lr: 0.00007, 'loss': '88.5', batch_cost: 0.25 sec",
        "[02/04 10:00:00] ppdet.metrics.metrics INFO: mAP(0.50, 11point) = 45.50%",
        "[EVAL] Finished, Epoch=1, bbox_mmap=0.25 .",
        "map_5095: 0.25",
        "map_50: 0.5",
        " Last accuracy mAP@0.5 = 12.50 %, best = 12.50 % ",
        "Epoch 1/50",
        " 24/110 [====>.........................] - ETA: 8:47 - loss: 18.5 - box_loss: 1.5",
        "Epoch 3:  50%|█████     | 100/200 [00:20<00:20,  5.00it/s, v_num=0, train_loss=1.25, val_map=0.25]",
        "Epoch 3/19 ━━━━╸━━━━ 100/200 0:00:20 • 0:00:20 5.0it/s v_num: 0 train/loss: 0.5",
        "Epoch [2/100], Step [20/600], Loss: 0.5, mAP@0.5:0.95: 0.25",
        "Step 200 per-step time 0.831s loss=1.192",
        "│   ├── Ppyoloeloss/loss = 2.1742",
        '{"log_history": [{"loss": 1.5, "step": 1, "epoch": 0.1}], "global_step": 1}',
    )
)
PIECES = (
    b"nan",
    b"-",
    b".",
    b"..",
    b"\xe2\x80\xa6",
    b"9" * 30,
    b"/",
    b"%",
    b":",
    b",",
    b"\x00",
    b"\xff",
    b" ",
    b"\x1b[",
    b"1e999",
    b"inf",
)


def mutated(line: bytes, dice: random.Random) -> bytes:
    for _ in range(dice.randint(0, 4)):
        at = dice.randint(0, len(line))
        line = line[:at] + dice.choice((b"", dice.choice(PIECES))) + line[at + dice.randint(0, 6) :]
    return line


def feed_all(form: Format, lines: list[bytes]) -> None:
    parser = form.parser("log")
    for line in lines:
        for item in parser.feed(line, 1.0):
            assert isinstance(item, TrainRecord | BrokenLine)
            if isinstance(item, TrainRecord):
                assert item.text.isprintable()
    for item in parser.finish(1.0):
        assert isinstance(item, TrainRecord | BrokenLine)


@pytest.mark.parametrize("form", formats(), ids=lambda form: form.name)
def test_damaged_lines_never_raise(form: Format) -> None:
    dice = random.Random(7)
    for _ in range(150):
        lines = [mutated(dice.choice(LINES), dice) for _ in range(12)]
        form.score(Head(name="log", parent="", data=b"\n".join(lines)))
        feed_all(form, lines)


@pytest.mark.parametrize("form", formats(), ids=lambda form: form.name)
@settings(max_examples=25, deadline=None)
@given(lines=st.lists(st.binary(max_size=80), max_size=6))
def test_any_bytes_never_raise(form: Format, lines: list[bytes]) -> None:
    form.score(Head(name="log", parent="", data=b"\n".join(lines)))
    feed_all(form, lines)
