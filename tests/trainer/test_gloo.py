"""A plain PyTorch loop in two gloo processes, with JsonlLogger and FeatureMonitor: one stream a rank."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trainer.streams import events, read_stream

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed: pip install torch", allow_module_level=True)

pytestmark = pytest.mark.real_training
REPOSITORY = Path(__file__).resolve().parents[2]

LOOP = """
import sys
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
import yolomon

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Sequential(
    torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
    torch.nn.Flatten(), torch.nn.Linear(8 * 36, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
log = yolomon.JsonlLogger(sys.argv[1], epochs=2)
monitor = yolomon.FeatureMonitor(model, every=4, log=log)
torch.manual_seed(rank)
loader = [torch.randn(4, 3, 8, 8) for _ in range(5)]
step = 0
with log.phase("train", epochs=2, world_size=2):
    for epoch in (1, 2):
        for images in log.batches(loader):
            step += 1
            optimizer.zero_grad()
            loss = model(images).square().mean()
            loss.backward()
            optimizer.step()
            log(step=step, epoch=epoch, loss=loss, images=len(images), **{"lr/pg0": 0.01})
        if rank == 0:
            with log.phase("val", epoch=epoch):
                pass
            log.epoch_end(epoch, {"mAP50": 0.1 * epoch})
monitor.close()
log.close()
dist.destroy_process_group()
"""


def test_two_ranks_write_two_streams_that_agree(tmp_path: Path) -> None:
    script = tmp_path / "loop.py"
    script.write_text(LOOP)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    done = subprocess.run(
        [*command, str(script), str(tmp_path / "yolomon.jsonl")],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    first = read_stream(tmp_path / "yolomon.jsonl")
    second = read_stream(tmp_path / "yolomon.rank1.jsonl")
    for rank, records in enumerate((first, second)):
        assert {record["rank"] for record in records} == {rank}
        assert [record["step"] for record in events(records, "batch")] == list(range(1, 11))
        assert [record["batch"] for record in events(records, "batch")] == [1, 2, 3, 4, 5] * 2
        assert [record["step"] for record in events(records, "features")] == [1, 5, 9]
    assert first[0]["pid"] != second[0]["pid"]
    assert [record["event"] for record in events(first, "val_start", "val_end", "fit_epoch_end")] == [
        "val_start", "val_end", "fit_epoch_end",
    ] * 2  # fmt: skip
    one, other = events(first, "features")[0], events(second, "features")[0]
    assert one["grad_norm"] == pytest.approx(other["grad_norm"], rel=1e-5), "gradients are reduced over ranks"
    assert one["layers"]["0"]["mean"] != other["layers"]["0"]["mean"], "feature maps are each rank's own"
