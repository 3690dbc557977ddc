"""Countable resources that stand for cards: of which vendor, and what a unit of them is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from placement.formats.ledger import Ledger

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Vendor:
    """A resource of which a unit is a card.

    Attributes
    ----------
    model : str
        Where no label says it.
    models : tuple of str
        Labels that say the model; one that ends in a dot has it in its key.
    memory : str
        Label that says the memory of a card, in whole GiB such as ``192G``.
    numbers : str
        Label that lists the cards, joined by dots, where a unit may be a share of one.
    """

    model: str
    models: tuple[str, ...] = ()
    memory: str = ""
    numbers: str = ""


_INTEL = Vendor("Intel-GPU", ("gpu.intel.com/product", "gpu.intel.com/family"), numbers="gpu.intel.com/gpu-numbers")

VENDORS: dict[str, Vendor] = {
    "amd.com/gpu": Vendor(
        "AMD-GPU",
        ("amd.com/gpu.product-name", "beta.amd.com/gpu.product-name", "beta.amd.com/gpu.product-name."),
        memory="amd.com/gpu.vram",
    ),
    "gpu.intel.com/i915": _INTEL,
    "gpu.intel.com/xe": _INTEL,
    "habana.ai/gaudi": Vendor("Gaudi", ("habana.ai/gaudi.product",)),
    "google.com/tpu": Vendor("TPU", ("cloud.google.com/gke-tpu-accelerator",)),
    "cambricon.com/mlu": Vendor("MLU"),
    "iluvatar.ai/gpu": Vendor("Iluvatar-GPU"),
    "iluvatar.com/gpu": Vendor("Iluvatar-GPU"),
    "metax-tech.com/gpu": Vendor("MetaX-GPU"),
    "enflame.com/gcu": Vendor("GCU"),
    "huawei.com/Ascend310": Vendor("Ascend310"),
    "huawei.com/Ascend310P": Vendor("Ascend310P"),
    "huawei.com/Ascend910": Vendor("Ascend910", ("node.kubernetes.io/npu.chip.name",)),
    "qualcomm.com/qaic": Vendor("Cloud-AI-100"),
    "rebellions.ai/ATOM": Vendor("ATOM"),
    "furiosa.ai/rngd": Vendor("RNGD"),
}


def model_of(vendor: Vendor, labels: Labels, ledger: Ledger, where: str) -> str:
    """Return the model of a vendor's cards."""
    for key in vendor.models:
        if labels.get(key):
            return labels[key]
        if key.endswith("."):
            found = sorted(label.removeprefix(key) for label in labels if label.startswith(key) and label != key)
            if found:
                return found[0]
    ledger.assumed("cards of which no label says the model", f"the model {vendor.model}", where)
    return vendor.model


def memory_of(vendor: Vendor, labels: Labels) -> str | None:
    """Return the memory of a card; the labeller writes GiB as ``G``."""
    text = labels.get(vendor.memory, "") if vendor.memory else ""
    digits = text.removesuffix("G")
    return f"{digits}Gi" if digits != text and digits.isascii() and digits.isdigit() and len(digits) < 7 else None


@dataclass(frozen=True, slots=True)
class Family:
    """Resources that state the same cards in several units.

    Attributes
    ----------
    counts : tuple of str
        Resources of which a unit is a card.
    parts : dict of str to (int or None)
        Resources of which so many units are a card; None where that differs, as for memory.
    labels : tuple of str
        Labels that say how many cards there are.
    model : str
        Where no label of NVIDIA's cards says it; they are all theirs, but for those of a family that has one.
    memory : str
        Resource that is the memory of all cards of a node, in bytes.
    """

    counts: tuple[str, ...] = ()
    parts: dict[str, int | None] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    model: str = ""
    memory: str = ""


FAMILIES: tuple[Family, ...] = (
    Family(
        ("alibabacloud.com/gpu-count", "aliyun.com/gpu-count"),
        {"alibabacloud.com/gpu-milli": 1000, "aliyun.com/gpu-mem": None, "aliyun.com/gpu-core.percentage": 100},
        ("aliyun.accelerator/nvidia_count",),
    ),
    Family(("volcano.sh/gpu-number",), {"volcano.sh/gpu-memory": None}),
    Family(
        (),
        {"koordinator.sh/gpu-core": 100, "koordinator.sh/gpu-memory-ratio": 100, "koordinator.sh/gpu": 100},
        memory="koordinator.sh/gpu-memory",
    ),
    Family((), {"tencent.com/vcuda-core": 100, "tencent.com/vcuda-memory": None}),
    Family(
        ("aws.amazon.com/neuron", "aws.amazon.com/neurondevice"),
        {"aws.amazon.com/neuroncore": None},
        model="Neuron",
    ),
)


def vendor_of(resource: str) -> str:
    """Return the vendor of the cards that a resource stands for, as drivers are called by it; else NVIDIA."""
    if resource in VENDORS or any(family.model and resource in (*family.counts, *family.parts) for family in FAMILIES):
        return resource.partition("/")[0].removesuffix(".com").removeprefix("gpu.")
    return "nvidia"
