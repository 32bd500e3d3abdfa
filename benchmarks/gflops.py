"""Operations per image of the architectures in the shipped zoos: writes ``resources/gflops.csv``.

``python -m benchmarks.gflops`` counts them with torch's own counter on networks without memory
(the device ``meta``). One multiplication and one addition are two operations. Activations and
normalisation are not counted.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator

import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import ROOT
from stamp.config.zoo import Model, model_of, read_zoo
from stamp.models.torchvision_ops import timm

FILE = ROOT / "resources" / "gflops.csv"
ZOOS = ("medical", "natural")
SIZE = 224  # where an entry has no size of its own
# Architectures that the zoo loads by transformers.
SAME_AS = {"ViT-B/32": "vit_base_patch32_224", "ViT-B/14": "vit_base_patch14_dinov2"}


def architecture(model: Model) -> str | None:
    """timm's name of a model's architecture."""
    block, backbone = model.load, model.load.get("backbone")
    inner = backbone.get("timm") if isinstance(backbone, dict) else None
    return block.get("arch") or block.get("name") or inner or SAME_AS.get(model.backbone)


def gflops(name: str, size: int) -> float:
    """Billions of operations of one image of three channels."""
    network = timm.create_model(name, pretrained=False, **_resized(name, size))
    return operations(network, size) / 1e9


def operations(network: torch.nn.Module, size: int) -> int:
    """Operations of one image of three channels."""
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), counter:
        network.to("meta").eval()(torch.empty(1, 3, size, size, device="meta"))
    return counter.get_total_flops()


def _resized(name: str, size: int) -> dict[str, int]:
    """Transformers whose positions must be resampled are told the size."""
    own = timm.get_pretrained_cfg(name)
    return {"img_size": size} if own is not None and own.fixed_input_size else {}


def rows() -> Iterator[tuple[str, int, float]]:
    """Every architecture of the zoos at every size that it is run at."""
    found: dict[tuple[str, int], str] = {}
    for zoo in ZOOS:
        for key, entry in read_zoo(ROOT / "config" / "zoo" / f"{zoo}.yaml").items():
            model = model_of(key, entry, entry["load"], {"size": SIZE})
            if name := architecture(model):
                found.setdefault((model.backbone, model.preprocessing.size), name)
    for (backbone, size), name in sorted(found.items()):
        yield backbone, size, gflops(name, size)


def main() -> None:
    """Write the table."""
    with FILE.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("backbone", "size", "gflops"))
        for backbone, size, number in rows():
            table.writerow((backbone, size, f"{number:.3g}"))


if __name__ == "__main__":
    main()
