"""A session: the cluster as it is now, kept up to date by events, and decisions about what waits in milliseconds."""

from __future__ import annotations

from placement.session.decision import Decision as Decision
from placement.session.session import Session as Session
