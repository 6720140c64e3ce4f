"""FeatureMonitor: what it says of layers and gradients, and that it leaves no trace."""

from __future__ import annotations

import copy
import io
import math
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

from tests.trainer.streams import events, read_stream  # noqa: E402
from yolomon.trainer import statistics  # noqa: E402
from yolomon.trainer.features import FeatureMonitor  # noqa: E402
from yolomon.trainer.gradients import gradient_norms  # noqa: E402
from yolomon.trainer.statistics import layer_statistics, spaced  # noqa: E402
from yolomon.trainer.writer import JsonlLogger  # noqa: E402

torch.set_num_threads(1)


def small_model() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1),
        torch.nn.SiLU(),
        torch.nn.Conv2d(8, 4, 3, padding=1),
        torch.nn.Flatten(),
        torch.nn.Linear(4 * 8 * 8, 2),
    )


def train_step(model: Any, optimizer: Any, clip: float | None = None) -> Any:
    optimizer.zero_grad()
    loss = model(torch.randn(4, 3, 8, 8)).square().mean()
    loss.backward()
    if clip is not None:
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    return loss.detach()


def hook_count(model: Any) -> int:
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


def statistics_of(tensor: Any) -> dict[str, float]:
    return dict(zip(statistics.NAMES, layer_statistics(tensor).tolist(), strict=True))


class SaveOnce:
    """A forward hook that saves the whole model, as a script might."""

    def __init__(self, model: Any, into: list[bytes]) -> None:
        self.model, self.into, self.hooks_inside = model, into, 0

    def __call__(self, *_: object) -> None:
        if not self.into:
            self.hooks_inside = hook_count(self.model) - 1
            buffer = io.BytesIO()
            torch.save(self.model, buffer)
            self.into.append(buffer.getvalue())

    def __reduce__(self) -> tuple[type, tuple[None, list[bytes]]]:
        return SaveOnce, (None, [b"saved"])


class TestStatistics:
    def test_agree_with_what_the_definitions_say(self) -> None:
        torch.manual_seed(1)
        values = torch.randn(4, 16, 10, 10) * 3 + 1
        values[:, 5] = 0.25  # a dead channel
        found = statistics_of(values)
        assert found["mean"] == pytest.approx(values.mean().item(), rel=1e-5)
        assert found["std"] == pytest.approx(values.std(unbiased=False).item(), rel=1e-5)
        assert found["absmax"] == values.abs().max().item()
        assert found["dead_channels"] == pytest.approx(1 / 16)
        assert found["nonfinite"] == 0

    def test_near_zero_counts_against_the_spread(self) -> None:
        values = torch.cat([torch.full((1, 1, 75, 1), 1e-6), torch.full((1, 1, 25, 1), 1.0)], dim=2)
        assert statistics_of(values)["sparsity"] == pytest.approx(0.75)

    def test_nan_and_infinity_are_counted_and_the_rest_is_still_described(self) -> None:
        values = torch.ones(1, 2, 5, 10)
        values[0, 0, 0, 0] = math.nan
        values[0, 1, 2, 3] = math.inf
        found = statistics_of(values)
        assert found["nonfinite"] == pytest.approx(0.02)
        assert found["mean"] == pytest.approx(1.0)
        assert math.isnan(found["absmax"])

    def test_one_infinity_anywhere_in_a_large_map_shows_in_absmax(self) -> None:
        values = torch.zeros(2, 64, 128, 128)
        values[1, 63, 127, 126] = math.inf
        assert statistics_of(values)["absmax"] == math.inf

    def test_half_precision_does_not_overflow(self) -> None:
        values = torch.full((2, 8, 32, 32), 60000.0, dtype=torch.float16)
        found = statistics_of(values)
        assert found["mean"] == pytest.approx(60000, rel=1e-3)
        assert found["std"] == pytest.approx(0, abs=1)

    @pytest.mark.parametrize(
        "shape", [(64, 256, 160, 160), (1, 1024, 80, 80), (128, 8400, 64), (4096, 512), (7,)]
    )
    def test_of_a_large_map_few_values_but_all_channels_are_looked_at(self, shape: tuple[int, ...]) -> None:
        view = spaced(torch.empty(shape, device="meta"))
        channel = 0 if len(shape) == 1 else 2 if len(shape) == 3 else 1
        assert view.shape[channel] == shape[channel]
        assert view.numel() <= 4 * statistics.VALUES_LIMIT
        if math.prod(shape) > statistics.VALUES_LIMIT:
            assert view.numel() >= statistics.VALUES_LIMIT / 8


class TestMonitor:
    def test_the_first_and_every_nth_step_are_looked_at(self, tmp_path: Path) -> None:
        model = small_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        log = JsonlLogger(tmp_path / "run.jsonl", rank=0)
        monitor = FeatureMonitor(model, every=5, log=log)
        for step in range(1, 13):
            log(step=step, epoch=1, loss=train_step(model, optimizer))
        monitor.close()
        found = events(read_stream(log.path), "features")
        assert [record["step"] for record in found] == [1, 6, 11]
        assert set(found[0]["layers"]) == {"0", "2", "4"}
        assert set(found[0]["layers"]["0"]) == set(statistics.NAMES)

    def test_gradient_norms_are_what_the_optimizer_got(self) -> None:
        model = small_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        monitor = FeatureMonitor(model)
        train_step(model, optimizer, clip=0.01)
        record = monitor.step()
        assert record is not None
        assert record["grad_norm"] == pytest.approx(0.01, rel=1e-3)
        assert set(record["grad_norms"]) == {"0", "2", "4"}
        squares = sum(norm**2 for norm in record["grad_norms"].values())
        assert record["grad_norm"] == pytest.approx(squares**0.5, rel=1e-5)

    def test_scaled_gradients_are_given_unscaled(self) -> None:
        parameter = torch.nn.Parameter(torch.zeros(2))
        parameter.grad = torch.tensor([3.0, 4.0]) * 1024
        norms = gradient_norms({"all": [parameter]}, scale=torch.tensor(1024.0))
        assert norms["all"].item() == pytest.approx(5.0)

    def test_accumulated_gradients_are_awaited(self) -> None:
        model = small_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        monitor = FeatureMonitor(model, every=50)
        records = []
        for step in range(1, 5):
            model(torch.randn(4, 3, 8, 8)).mean().backward()
            if step == 4:
                optimizer.step()
            records.append(monitor.step(step))
        assert records[:3] == [None, None, None]
        assert (records[3] or {})["step"] == 1
        assert (records[3] or {})["grad_step"] == 4

    def test_no_hook_is_in_the_model_between_steps_or_after_close(self) -> None:
        modules = sys.modules["torch.nn.modules.module"]
        optimizers = sys.modules["torch.optim.optimizer"]
        model = small_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        inside: list[int] = []
        model[4].register_forward_hook(lambda *_: inside.append(hook_count(model)))
        own = hook_count(model)
        monitor = FeatureMonitor(model, every=3)
        for _ in range(4):
            assert hook_count(model) == own, "a model copied or saved here carries no hook"
            train_step(model, optimizer)
            monitor.step()
        assert [count > own for count in inside] == [True, False, False, True]
        assert hook_count(model) == own
        monitor.close()
        assert not modules._global_forward_pre_hooks
        assert not optimizers._global_optimizer_pre_hooks
        assert monitor.step() is None

    def test_closed_before_the_first_step_leaves_nothing(self) -> None:
        model = small_model()
        FeatureMonitor(model).close()
        assert hook_count(model) == 0
        assert not sys.modules["torch.nn.modules.module"]._global_forward_pre_hooks

    def test_a_model_saved_in_the_middle_of_a_sampled_step_loads_and_runs(self) -> None:
        model = small_model()
        saved: list[bytes] = []
        model[2].register_forward_hook(save_hook := SaveOnce(model, saved))
        monitor = FeatureMonitor(model)
        train_step(model, torch.optim.SGD(model.parameters(), lr=0.01))
        monitor.close()
        assert save_hook.hooks_inside > 0
        twin = torch.load(io.BytesIO(saved[0]), weights_only=False)
        assert twin(torch.zeros(1, 3, 8, 8)).shape == (1, 2)

    def test_hooks_of_others_stay(self) -> None:
        model = small_model()
        seen = []
        model[0].register_forward_hook(lambda *_: seen.append(1))
        before = dict(model[0]._forward_hooks)
        with FeatureMonitor(model):
            pass
        assert dict(model[0]._forward_hooks) == before

    def test_training_is_the_same_number_for_number(self) -> None:
        def weights(watched: bool) -> Any:
            model = small_model()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            monitor = FeatureMonitor(model, every=2) if watched else None
            torch.manual_seed(5)
            for _ in range(6):
                train_step(model, optimizer)
                if monitor is not None:
                    monitor.step()
            return torch.cat([p.detach().flatten() for p in model.parameters()])

        assert torch.equal(weights(True), weights(False))

    def test_validation_in_between_is_not_taken_for_the_sample(self) -> None:
        model = small_model()
        monitor = FeatureMonitor(model)
        model.eval()
        with torch.no_grad():
            model(torch.randn(1, 3, 8, 8))
        model.train()
        train_step(model, torch.optim.SGD(model.parameters(), lr=0.01))
        record = monitor.step()
        assert record is not None
        assert set(record["layers"]) == {"0", "2", "4"}

    def test_a_copy_made_during_a_sample_trains_on(self) -> None:
        model = small_model()
        monitor = FeatureMonitor(model)
        twin = copy.deepcopy(small_model())
        train_step(twin, torch.optim.SGD(twin.parameters(), lr=0.01))
        assert monitor.wants_gradients, "another model's optimizer is not this model's"
        monitor.close()

    def test_layers_by_pattern_and_a_pattern_that_fits_none(self, tmp_path: Path) -> None:
        log = JsonlLogger(tmp_path / "run.jsonl", rank=0)
        monitor = FeatureMonitor(small_model(), layers=["[02]", "neck.*"], log=log)
        assert monitor.layer_names == ("0", "2")
        assert "'neck.*'" in events(read_stream(log.path), "warning")[0]["text"]
        monitor.close()

    def test_compiled_layers_are_named_as_unseen_and_gradients_go_on(self, tmp_path: Path) -> None:
        model = small_model()
        compiled = torch.compile(model, backend="eager")
        log = JsonlLogger(tmp_path / "run.jsonl", rank=0)
        monitor = FeatureMonitor(compiled, log=log)
        assert hook_count(model) == 0
        log(step=1, loss=train_step(compiled, torch.optim.SGD(model.parameters(), lr=0.01)))
        monitor.close()
        records = read_stream(log.path)
        assert "torch.compile" in events(records, "warning")[0]["text"]
        features = events(records, "features")[0]
        assert features["layers"] == {}
        assert features["unseen"] == ["0", "2", "4"]
        assert features["grad_norm"] > 0

    def test_a_layer_that_is_never_called_is_given_up(self, tmp_path: Path) -> None:
        class Unused(torch.nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.used = torch.nn.Linear(4, 1)
                self.never = torch.nn.Linear(4, 1)

            def forward(self, x: Any) -> Any:
                return self.used(x)

        model = Unused()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        log = JsonlLogger(tmp_path / "run.jsonl", rank=0)
        monitor = FeatureMonitor(model, every=1, log=log)
        for step in range(1, 6):
            model(torch.randn(2, 4)).mean().backward()
            optimizer.step()
            log(step=step)
        monitor.close()
        assert hook_count(model) == 0
        assert events(read_stream(log.path), "features")[-1]["unseen"] == ["never"]

    def test_an_output_without_a_tensor_does_not_stop_the_forward_pass(self) -> None:
        class Words(torch.nn.Module):  # type: ignore[misc, name-defined]
            def forward(self, x: Any) -> Any:
                return {"text": "no tensor", "count": 3}

        model = torch.nn.Sequential(Words())
        monitor = FeatureMonitor(model, layers=["0"])
        assert model(torch.ones(1)) == {"text": "no tensor", "count": 3}
        monitor.close()
