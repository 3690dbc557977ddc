"""Wall time by activity, for telling where a run spends it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Timing:
    """Wall seconds by activity."""

    seconds: dict[str, float] = field(default_factory=dict)

    def add(self, activity: str, seconds: float) -> None:
        """Add time to an activity."""
        self.seconds[activity] = self.seconds.get(activity, 0.0) + seconds
