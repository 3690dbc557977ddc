"""What a session decides about one job."""

from __future__ import annotations

from dataclasses import dataclass, field

from placement.plan import Tasks


@dataclass(frozen=True, slots=True)
class Decision:
    """What is decided about one job.

    Attributes
    ----------
    job : str
    tasks : Tasks
        Where its tasks go; none where it is not to start now.
    reason : str
        Why it is not; one sentence.
    seconds : float
        What deciding took.
    """

    job: str
    tasks: Tasks
    reason: str = ""
    seconds: float = 0.0
    version: int = field(default=-1, repr=False)

    @property
    def starts(self) -> bool:
        """Whether the job is to start."""
        return len(self.tasks) > 0
