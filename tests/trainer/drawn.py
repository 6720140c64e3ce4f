"""A small detection data set, drawn: coloured discs and squares on noise, with YOLO labels."""

from __future__ import annotations

import random
from pathlib import Path

NAMES = ("disc", "square")


def draw_dataset(
    folder: Path, *, train: int = 24, val: int = 8, size: int = 160, seed: int = 0, task: str = "detect"
) -> Path:
    """Draw images of `size` pixels into `folder` and hand back the path of its data.yaml.

    Labels of `task`: boxes, polygons (segment, obb), or boxes with their centre as a keypoint (pose).
    """
    from PIL import Image, ImageDraw

    chance = random.Random(seed)
    for part, count in (("train", train), ("val", val)):
        (folder / "images" / part).mkdir(parents=True, exist_ok=True)
        (folder / "labels" / part).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            image = Image.effect_noise((size, size), 40).convert("RGB")
            pen = ImageDraw.Draw(image)
            labels = []
            for _ in range(chance.randint(1, 3)):
                kind = chance.randrange(len(NAMES))
                extent = chance.uniform(0.15, 0.4)
                x, y = (chance.uniform(extent / 2, 1 - extent / 2) for _ in range(2))
                box = [(c + s * extent / 2) * size for s in (-1, 1) for c in (x, y)]
                colour = (255, 80, 60) if kind == 0 else (60, 120, 255)
                (pen.ellipse if kind == 0 else pen.rectangle)(box, fill=colour)
                labels.append(f"{kind} {_label(task, x, y, extent)}\n")
            image.save(folder / "images" / part / f"{number:04d}.jpg")
            (folder / "labels" / part / f"{number:04d}.txt").write_text("".join(labels))
    names = "".join(f"  {index}: {name}\n" for index, name in enumerate(NAMES))
    keypoints = "kpt_shape: [1, 3]\nflip_idx: [0]\n" if task == "pose" else ""
    data = folder / "data.yaml"
    data.write_text(
        f"path: {folder.resolve()}\ntrain: images/train\nval: images/val\n{keypoints}names:\n{names}"
    )
    return data


def draw_classes(folder: Path, *, images: int = 8, size: int = 64) -> Path:
    """Draw a folder of images a class, for classification, and hand back the folder."""
    from PIL import Image, ImageDraw

    for part in ("train", "val"):
        for name in NAMES:
            (folder / part / name).mkdir(parents=True, exist_ok=True)
            for number in range(images):
                image = Image.effect_noise((size, size), 40).convert("RGB")
                pen = ImageDraw.Draw(image)
                (pen.ellipse if name == "disc" else pen.rectangle)(
                    (10, 10, 30 + number, 30 + number), fill=(255, 0, 0)
                )
                image.save(folder / part / name / f"{number}.jpg")
    return folder


def _label(task: str, x: float, y: float, extent: float) -> str:
    left, top, right, bottom = x - extent / 2, y - extent / 2, x + extent / 2, y + extent / 2
    if task in {"segment", "obb"}:
        corners = (left, top, right, top, right, bottom, left, bottom)
        return " ".join(f"{corner:.5f}" for corner in corners)
    box = f"{x:.5f} {y:.5f} {extent:.5f} {extent:.5f}"
    return f"{box} {x:.5f} {y:.5f} 2" if task == "pose" else box
