"""The dicts that the HF Trainer prints."""

from __future__ import annotations

import math

from tests.trainlog.formats.feeding import FormatOf, Records
from yolomon.trainlog.formats.hf_console import HfConsole

BAR = "\r  5%|▌         | 500/10000 [02:00<38:00,  4.17it/s]"
TRAIN = "{'loss': 1.25, 'grad_norm': 3.5, 'learning_rate': 4.9e-05, 'epoch': 0.5}\n"
V5 = "{'loss': '1.25', 'grad_norm': 'nan', 'learning_rate': '4.9e-05', 'epoch': '1.02'}\n"
EVAL = "{'eval_loss': 0.9, 'eval_map': 0.31, 'eval_map_50': 0.52, 'eval_map_small': -1.0, 'epoch': 1.0}\n"


def test_a_training_dict_with_the_step_of_the_bar(records: Records, format_of: FormatOf) -> None:
    assert format_of("out.log", (BAR + "\n" + TRAIN).encode()) == "hf-console"
    (batch,) = records(HfConsole, (BAR + "\n" + TRAIN).encode())
    assert (batch.kind, batch.epoch, batch.step) == ("batch", 1, 500)
    assert (batch.roles.loss, batch.roles.learning_rate, batch.roles.gradient_norm) == (1.25, 4.9e-05, 3.5)


def test_values_are_strings_from_transformers_5_on(records: Records) -> None:
    (batch,) = records(HfConsole, V5.encode())
    assert batch.roles.loss == 1.25
    assert math.isnan(batch.roles.gradient_norm)
    assert batch.epoch == 2  # 1.02 is in the second epoch


def test_a_dict_glued_to_a_redraw(records: Records) -> None:
    (batch,) = records(HfConsole, (BAR + TRAIN).encode())
    assert batch.roles.loss == 1.25


def test_evaluation(records: Records) -> None:
    evaluation_bar = "\r 50%|█████     | 4/8 [00:01<00:01,  4.00it/s]"
    (validation,) = records(HfConsole, (BAR + evaluation_bar + "\n" + EVAL).encode())
    assert (validation.kind, validation.epoch, validation.step) == ("validation", 1, 500)
    assert (validation.roles.map50, validation.roles.map50_95) == (0.52, 0.31)
    assert validation.roles.validation_losses == {"eval_loss": 0.9}
    assert "eval_map_small" not in validation.numbers  # -1: no such objects


def test_the_end(records: Records) -> None:
    line = "{'train_runtime': 1200.5, 'train_samples_per_second': 33.0, 'train_loss': 1.1, 'epoch': 10.0}\n"
    (end,) = records(HfConsole, line.encode())
    assert (end.kind, end.epoch) == ("end", 10)


def test_bars_without_blocks(records: Records) -> None:
    """Where the terminal's width is unknown and small, tqdm leaves the blocks out."""
    content = " 17% 34/204 [01:03<05:30,  1.94s/it]\n  0% 0/9 [00:00<?, ?it/s]\n" + EVAL
    (validation,) = records(HfConsole, content.encode())
    assert validation.step == 34


def test_the_words_before_the_first_step_are_a_start(records: Records) -> None:
    words = (
        "***** Running training *****\n  Num examples = 24,000\n  Num Epochs = 30\n"
        "  Total train batch size (w. parallel, distributed & accumulation) = 16\n"
        "  Total optimization steps = 900\n"
    )
    start, batch = records(HfConsole, (words + BAR + "\n" + TRAIN).encode())
    assert (start.kind, start.run.epochs, start.run.batch_size) == ("start", 30, 16)
    assert (batch.epochs, batch.step) == (30, 500)
    assert batch.roles.images_per_second == 16 * 4.17


def test_a_step_in_the_dict_goes_before_the_bars(records: Records) -> None:
    (record,) = records(HfConsole, (BAR + "\n" + TRAIN.replace("}", ", 'step': 510}")).encode())
    assert record.step == 510
