"""Node labels about cards, above all those of NVIDIA's GPU feature discovery.

The labels: https://github.com/NVIDIA/k8s-device-plugin/tree/main/docs/gpu-feature-discovery
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from placement.formats.ledger import Ledger
from placement.hardware import mig
from placement.units import version

LONGEST = 63
"""Characters of a label value; longer products are cut in the model, and a dash that comes last is left out."""

UNKNOWN = "unknown"
"""Model of cards of which nothing says it."""

Labels = Mapping[str, str]

_MIG = re.compile(r"-MIG-(INVALID|[0-9A-Za-z.+-]+)$")

_REPLICAS = ("nvidia.com/gpu.replicas", "cloud.google.com/gke-max-shared-clients-per-gpu")
_STRATEGIES = ("nvidia.com/gpu.sharing-strategy", "cloud.google.com/gke-gpu-sharing-strategy")
_COUNTS = ("nvidia.com/gpu.count", "cloud.google.com/gke-accelerator-count")

_MODELS = (
    "gpu.nvidia.com/model",
    "cloud.google.com/gke-accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
    "k8s.amazonaws.com/accelerator",
    "eks.amazonaws.com/instance-gpu-name",
    "aliyun.accelerator/nvidia_name",
    "alibabacloud.com/gpu-card-model",
    "aliyun.accelerator/card_model",
    "node.koordinator.sh/gpu-model",
)
"""Labels that say the model of NVIDIA's cards where feature discovery does not run."""


@dataclass(frozen=True, slots=True)
class CardLabels:
    """What the labels of a node say of NVIDIA's cards.

    Attributes
    ----------
    model : str
        Product without what was added to it; empty where no label says it.
    profile : str
        MIG profile that each unit of ``nvidia.com/gpu`` is (single strategy), or ``""``.
    invalid : bool
        Whether the MIG instances are such that the single strategy offers none of them.
    count : int, optional
        Physical cards; with a `profile` its instances.
    replicas : int
        Units that a card counts as; 1 where it is not shared.
    sharing : str
        ``""`` where cards are not shared.
    memory : str, optional
        Of a card, and not of an instance.
    compute_capability, driver, cuda : str
    """

    model: str
    profile: str
    invalid: bool
    count: int | None
    replicas: int
    sharing: Literal["", "time_slicing", "mps"]
    memory: str | None
    compute_capability: str
    driver: str
    cuda: str


def card_labels(labels: Labels, ledger: Ledger, where: str) -> CardLabels:
    """Return what the labels say of NVIDIA's cards."""
    product = labels.get("nvidia.com/gpu.product", "")
    model, profile, shared = parted(product or next(_mig_products(labels), ""))
    if not product:
        # GKE's own plugin, which runs without feature discovery
        profile = mig.plain_profile(labels.get("cloud.google.com/gke-gpu-partition-size", ""))
    full = uncut(product, model)
    if full != model:
        ledger.assumed("a product label that was cut to 63 characters", "the one known model that begins so", where)
    replicas = next(filter(None, (whole(labels, key, ledger, where) for key in _REPLICAS)), 1)
    said = next((labels[key] for key in _STRATEGIES if labels.get(key)), "")
    sharing: Literal["", "time_slicing", "mps"] = ""
    if said == "mps":
        sharing = "mps"
    elif said in ("time-slicing", "time-sharing") or shared or replicas > 1:
        sharing = "time_slicing"
        if said == "none" and replicas > 1:
            ledger.contradiction("sharing-strategy none and replicas above 1", "the replicas, by time-slicing", where)
        elif not said:
            ledger.assumed("how replicas share a card", "by time-slicing, the only way before the label", where)
    if said not in ("", "none", "mps", "time-slicing", "time-sharing"):
        ledger.ignored("a sharing strategy in the labels", "none that is known; replicas are by time-slicing", where)
    megabytes = whole(labels, "nvidia.com/gpu.memory", ledger, where)
    return CardLabels(
        model=full or next((labels[key] for key in _MODELS if labels.get(key)), ""),
        profile="" if profile == "INVALID" else profile,
        invalid=profile == "INVALID",
        count=next((found for key in _COUNTS if (found := whole(labels, key, ledger, where)) is not None), None),
        replicas=replicas,
        sharing=sharing,
        memory=f"{megabytes}Mi" if megabytes and not profile else None,
        compute_capability=_version(labels, ledger, where, ("", ("gpu.compute.major", "gpu.compute.minor"))),
        driver=_version(
            labels,
            ledger,
            where,
            (
                "cuda.driver-version.full",
                ("cuda.driver-version.major", "cuda.driver-version.minor", "cuda.driver-version.revision"),
            ),
            ("", ("cuda.driver.major", "cuda.driver.minor", "cuda.driver.rev")),
        ),
        cuda=_version(
            labels,
            ledger,
            where,
            ("cuda.runtime-version.full", ("cuda.runtime-version.major", "cuda.runtime-version.minor")),
            ("", ("cuda.runtime.major", "cuda.runtime.minor")),
        ),
    )


def parted(product: str) -> tuple[str, str, bool]:
    """Return model, MIG profile (``"INVALID"`` for none that is usable) and whether cards are shared.

    Examples
    --------
    >>> parted("A100-PCIE-40GB-MIG-1g.5gb.me-SHARED")
    ('A100-PCIE-40GB', '1g.5gb+me', True)
    >>> parted("Tesla-T4")
    ('Tesla-T4', '', False)
    """
    plain = product.removesuffix("-SHARED")
    found = _MIG.search(plain)
    if found is None:
        return plain, "", plain != product
    profile = found[1] if found[1] == "INVALID" else mig.plain_profile(found[1])
    return plain[: found.start()], profile, plain != product


def uncut(product: str, model: str) -> str:
    """Return the model in full where the label was cut and one known model begins so.

    Examples
    --------
    >>> product = "NVIDIA-RTX-PRO-6000-Blackwell-Max-Q-Workstation-MIG-1g.24gb.me"
    >>> uncut(product, "NVIDIA-RTX-PRO-6000-Blackwell-Max-Q-Workstation")
    'NVIDIA-RTX-PRO-6000-Blackwell-Max-Q-Workstation-Edition'
    """
    if len(product) < LONGEST - 1 or not model or mig.geometry(model) is not None:
        return model
    begins = sorted(name for name in _known_names() if name.startswith(model))
    return begins[0] if len(begins) == 1 else model


@cache
def _known_names() -> frozenset[str]:
    names = {name for one in mig.geometries() for name in one.aliases}
    return frozenset(re.sub(r"\s+", "-", name) for name in names)


def mig_labels(labels: Labels) -> dict[str, tuple[str, str]]:
    """Return count and replicas that labels of the mixed strategy state, by profile as the label writes it."""
    found = {}
    for key, value in labels.items():
        if key.startswith("nvidia.com/mig-") and key.endswith(".count"):
            stem = key.removesuffix(".count")
            found[stem.removeprefix("nvidia.com/mig-")] = (value, labels.get(f"{stem}.replicas", ""))
    return found


def _mig_products(labels: Labels) -> Iterator[str]:
    """Yield the products that labels of the mixed strategy state."""
    for key, value in labels.items():
        if value and key.startswith("nvidia.com/mig-") and key.endswith(".product"):
            yield value


def whole(labels: Labels, key: str, ledger: Ledger, where: str) -> int | None:
    """Return the whole number that a label states; None where there is none."""
    text = labels.get(key)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 12):
        ledger.ignored(f"label {key}", "it is not a whole number", where)
        return None
    return int(text)


def _version(labels: Labels, ledger: Ledger, where: str, *ways: tuple[str, tuple[str, ...]]) -> str:
    """Return the version that the first of some labels states, whole or in parts."""
    for full, parts in ways:
        text = labels.get(f"nvidia.com/{full}", "") or _joined(labels, parts)
        if text:
            try:
                version(text)
            except ValueError:
                ledger.ignored("a version in the labels", "it is not digits and dots", where)
                return ""
            return text
    return ""


def _joined(labels: Labels, parts: tuple[str, ...]) -> str:
    """Return parts of a version joined by dots, up to the first that is missing."""
    found: list[str] = []
    for part in parts:
        text = labels.get(f"nvidia.com/{part}", "")
        if not text:
            break
        found.append(text)
    return ".".join(found)
