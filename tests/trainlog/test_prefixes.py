"""What launchers and collectors put in front of a console's lines."""

from __future__ import annotations

import pytest

from yolomon.trainlog.lines import LineSplitter
from yolomon.trainlog.log import Log
from yolomon.trainlog.prefixes import unprefixed

PREFIXES = (
    "[rank0]: ",
    "[default0]:",
    "[1,0]<stdout>: ",
    "[1,0]<stderr>:",
    "0: ",
    " 0: ",
    "(RayTrainWorker pid=4242, ip=10.0.0.1) ",
    "2026-12-01T05:21:45.123456789Z ",
    "2026-12-01T05:21:45+01:00 ",
    "2026-12-01 05:21:45 ",
    "[2026-12-01 05:21:45] ",
    "2021/08/16 14:12:09 | ",
    "Dec 01 05:21:45 ",
    "Dec  1 05:21:45 node-3 python3[4242]: ",
    "00:00:12 ",
    "[21:25:16.951899] ",
    "\x1b[36m(RayTrainWorker pid=4242)\x1b[0m ",
    "2026-12-01T05:21:45Z [rank0]: ",
)
LINES = (
    "Epoch: [0]  [150/225]  eta: 0:00:25  lr: 0.0001  loss: 1.5 (2.5)  time: 0.5  data: 0.1  max mem: 5123",
    "      1/100      2.31G      1.5       2.25       1.25         42        640: 20% ━━── 1/5 2.0it/s",
    " 1400: 6.25, 7.5 avg loss, 0.001 rate, 3.2 seconds, 89600 images",
    "2020-05-08 18:44:23,494 - mmdet - INFO - Epoch [1][1200/7517]\tlr: 0.02, loss: 0.5",
    "04/25 10:37:34 - mmengine - INFO - Epoch(train)  [8][ 5/10]  lr: 0.02  loss: 0.5",
    "2021-08-02 15:19:14.500 | INFO     | yolox.core.trainer:254 - epoch: 1/300, iter: 10/161, mem: 8Mb",
    "[06/24 11:20:46] ppdet.engine INFO: Epoch: [0] [ 20/134] learning_rate: 0.1 loss: 57.5",
    "2021-04-29 06:19:48,726-INFO: iter: 1400, lr: 0.00007, 'loss': '88.0'",
    "[08/07 00:36:32 d2.utils.events]:  eta: 15:32:55  iter: 14999  total_loss: 0.66",
    "{'loss': 1.25, 'epoch': 0.5}",
)


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_the_trainers_own_stays_whole(line: str) -> None:
    assert unprefixed(line.encode()) == line.encode()


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("line", LINES)
def test_the_prefix_goes(prefix: str, line: str) -> None:
    assert unprefixed((prefix + line).encode()).lstrip() == line.lstrip().encode()


@pytest.mark.parametrize("prefix", ["[rank1]: ", "[default3]:", "[1,2]<stdout>:", "7: "])
def test_of_other_ranks_only_what_is_wrong_is_kept(prefix: str) -> None:
    assert unprefixed((prefix + LINES[0]).encode()) == b""
    assert unprefixed((prefix + "RuntimeError: CUDA error: out of memory").encode()).startswith(
        b"RuntimeError"
    )


def test_a_log_of_two_ranks_is_one_run() -> None:
    lines = [
        f"[rank{rank}]: Epoch: [0]  [{step:3d}/225]  eta: 0:00:25  lr: 0.0001  loss: 1.5 (2.5)  time: 0.5"
        for step in range(0, 50, 10)
        for rank in (1, 0)
    ]
    log = Log("slurm.out")
    found = log.push(("\n".join(lines) + "\n").encode(), 0.0, 0.0)
    assert log.format is not None
    assert log.format.name == "detr-console"
    assert [record.batch for record in found] == [1, 11, 21, 31, 41]
    assert {record.segment for record in found} == {0}


def test_only_consoles_lose_their_prefixes() -> None:
    assert LineSplitter().feed(b"[rank0]: {}\n") == [b"[rank0]: {}"]
    assert LineSplitter(redraws=True).feed(b"[rank0]: x\r[rank1]: y\n") == [b"x"]


def test_a_last_line_without_its_end_loses_it_too() -> None:
    splitter = LineSplitter(redraws=True)
    splitter.feed(b"Dec 01 05:21:45 all")
    assert splitter.take_last() == b"all"
