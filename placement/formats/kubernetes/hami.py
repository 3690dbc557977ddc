"""What HAMi, and Volcano's vGPU plugin, write on a node about its cards.

Two forms of the annotation: ``uuid,shares,MiB,core%,type,numa,healthy:`` one after the other, and a JSON list. Sources:
https://github.com/Project-HAMi/HAMi/blob/master/docs/develop/protocol.md,
https://github.com/Project-HAMi/volcano-vgpu-device-plugin.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from placement.errors import InputError
from placement.formats.documents import convert
from placement.formats.kubernetes.objects import Item
from placement.snapshot.report import show

ANNOTATIONS = ("hami.io/node-nvidia-register", "4pd.io/node-nvidia-register", "volcano.sh/node-vgpu-register")

RESOURCES = ("nvidia.com/gpu", "nvidia.com/vgpu", "volcano.sh/vgpu-number")
"""Resources of which a unit is a share of a card; the first that a node has."""

_MOST = 10**9


@dataclass(frozen=True, slots=True)
class SharedCard:
    """A card that the annotation lists.

    Attributes
    ----------
    uuid : str
    shares : int
        Most pods on it at a time.
    memory : int
        MiB; 0 where it does not say.
    model : str
    numa : int, optional
    healthy : bool
    mode : str
        ``"mig"`` where pods get MIG instances that are made for them.
    """

    uuid: str
    shares: int
    memory: int
    model: str
    numa: int | None
    healthy: bool
    mode: str = ""


class _Json(msgspec.Struct, gc=False):
    id: str = ""
    count: int = 1
    devmem: int = 0
    type: str = ""
    numa: int | None = None
    health: bool = True
    mode: str = ""


def shared_cards(item: Item[Any], annotations: Mapping[str, str]) -> list[SharedCard] | None:
    """Return the cards that an annotation lists; None where there is none.

    Raises
    ------
    InputError
        If it is damaged.
    """
    for key in ANNOTATIONS:
        text = annotations.get(key, "").strip()
        if not text:
            continue
        path = f"{item.path}.metadata.annotations.{key}".removeprefix(".")
        cards = _json(item, text, path) if text.startswith("[") else _text(item, text, path)
        for card in cards:
            if not (1 <= card.shares <= _MOST and 0 <= card.memory <= _MOST and card.model.isprintable()):
                raise _error(item, path, f"a card with {card.shares} shares and {card.memory} MiB")
        return cards
    return None


def _json(item: Item[Any], text: str, path: str) -> list[SharedCard]:
    found = convert(msgspec.Raw(text.encode()), list[_Json], item.file, path)
    return [SharedCard(c.id, c.count, c.devmem, _model(c.type), c.numa, c.health, c.mode) for c in found]


def _text(item: Item[Any], text: str, path: str) -> list[SharedCard]:
    cards = []
    for part in filter(None, map(str.strip, text.split(":"))):
        fields = [field.strip() for field in part.split(",")]
        if len(fields) >= 7:
            uuid, shares, memory, _, model, numa, healthy = fields[:7]
            mode = fields[8] if len(fields) > 8 else ""
        elif len(fields) >= 5:
            # Volcano's plugin says neither cores nor zone
            uuid, shares, memory, model, healthy = fields[:5]
            numa, mode = "", fields[5] if len(fields) > 5 else ""
        else:
            raise _error(item, path, f"a card with {len(fields)} fields: {show(part)}")
        if not all(re.fullmatch(r"[0-9]{1,10}", number) for number in (shares, memory)):
            raise _error(item, path, f"a card with shares {show(shares)} and memory {show(memory)}")
        zone = int(numa) if re.fullmatch(r"[0-9]{1,3}", numa) else None
        cards.append(SharedCard(uuid, int(shares), int(memory), _model(model), zone, healthy == "true", mode))
    return cards


def _model(text: str) -> str:
    """Return a model with dashes, as labels have it; HAMi puts ``NVIDIA-`` before a name that may begin so already."""
    plain = re.sub(r"\s+", "-", text.strip())
    return plain.removeprefix("NVIDIA-") if plain.startswith("NVIDIA-NVIDIA-") else plain


def _error(item: Item[Any], path: str, what: str) -> InputError:
    remedy = "expected uuid,shares,MiB,core%,type,numa,healthy for each card: dump the node again"
    return InputError.one(what, remedy, path=path, source=item.file)
