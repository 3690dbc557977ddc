"""Optimal placement of GPU jobs on clusters: a checked plan, its value, and a proven bound.

>>> import placement as pl
>>> snapshot = pl.load(pl.instances.path("fragmentation-two-nodes"))
>>> plan = pl.solve(snapshot)
>>> plan.value == plan.bound, pl.check(snapshot, plan)
(True, [])
"""

from __future__ import annotations

# first, for the rest takes long enough to load to be interrupted
from placement import loading as _loading  # noqa: F401

# isort: split
from placement import instances as instances
from placement.check import Violation as Violation
from placement.check import check as check
from placement.decisions.consolidate import Consolidation as Consolidation
from placement.decisions.consolidate import consolidate as consolidate
from placement.decisions.partition import Partition as Partition
from placement.decisions.partition import partition as partition
from placement.decisions.preempt import Preemption as Preemption
from placement.decisions.preempt import preempt as preempt
from placement.engine import SOLVERS as SOLVERS
from placement.engine import solve as solve
from placement.errors import InputError as InputError
from placement.errors import PlacementError as PlacementError
from placement.errors import PlanError as PlanError
from placement.errors import SnapshotError as SnapshotError
from placement.errors import SolverError as SolverError
from placement.errors import UnhonouredError as UnhonouredError
from placement.errors import UsageError as UsageError
from placement.metrics import Sharing as Sharing
from placement.metrics import sharing as sharing
from placement.plan import Plan as Plan
from placement.planning import dump_plan as dump_plan
from placement.planning import dump_schedule as dump_schedule
from placement.planning import load_plan as load_plan
from placement.planning import load_schedule as load_schedule
from placement.repartition import Repartition as Repartition
from placement.repartition import repartition as repartition
from placement.run import Update as Update
from placement.scheduling.schedule import schedule as schedule
from placement.scheduling.simulate import simulate as simulate
from placement.session import Session as Session
from placement.simulation import Simulation as Simulation
from placement.snapshot import DomainLimit as DomainLimit
from placement.snapshot import Gpu as Gpu
from placement.snapshot import Job as Job
from placement.snapshot import Node as Node
from placement.snapshot import Policy as Policy
from placement.snapshot import Requires as Requires
from placement.snapshot import Running as Running
from placement.snapshot import RunningTask as RunningTask
from placement.snapshot import Snapshot as Snapshot
from placement.snapshot import Taint as Taint
from placement.snapshot import Task as Task
from placement.snapshot import TaskGroup as TaskGroup
from placement.snapshot import Toleration as Toleration
from placement.snapshot.read import dumps as dumps
from placement.snapshot.read import load as load
from placement.snapshot.read import loads as loads
from placement.timetable import Schedule as Schedule
from placement.version import VERSION as _VERSION

__version__ = _VERSION
