"""How long the reader takes, and how much memory, for 200 MB that are right, or wrong at the very end.

Run ``python benchmarks/reading.py [MEGABYTES]``. Each file is read in a process of its own, so that the peak of memory
is its own; nodes and jobs are listed one by one, and no two are alike.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

NODE = (
    '{"name":"node-%07d.example","position":{"block":"b%d","rack":"r%d"},"labels":{"zone":"a","arch":"amd64"},'
    '"cpu":"96","memory":"1000Gi","pods":110,"driver":"550.54.14","cuda":"12.4",'
    '"gpus":[{"model":"H100-80","count":8,"memory":"80Gi","compute_capability":"9.0"}]}'
)
JOB = (
    '{"name":"train-%07d","priority":%d,"submit_time":%d.5,"groups":[{"name":"worker","count":%d,'
    '"task":{"gpus":%d,"cpu":"8","memory":"64Gi","gpu_models":["H100-80"],"node_selector":{"zone":"a"}}}]}'
)
HEAD = '{"format":"placement-snapshot/1","topology":["block","rack"],"nodes":['


def right(count: int) -> str:
    """Return a snapshot with as many nodes and jobs."""
    nodes = ",".join(NODE % (i, i // 512, i // 16) for i in range(count))
    jobs = ",".join(JOB % (i, i % 3, i, 1 + i % 8, 1 + i % 8) for i in range(count))
    return f'{HEAD}{nodes}],"jobs":[{jobs}]}}'


def files(megabytes: float) -> Iterator[tuple[str, str]]:
    """Yield the name and text of each file."""
    text = right(int(megabytes * 1e6 / (len(NODE) + len(JOB) + 20)))
    end = text.rindex('"cpu":"8"')
    yield "right", text
    yield "breaks off", text[:-40]
    yield "unknown field", text[:end] + '"cpus":"8"' + text[end + 9 :]
    yield "key twice", text[:end] + '"gpus":1,' + text[end:]
    yield "NaN", text[:end] + '"cpu":NaN' + text[end + 9 :]
    yield "negative", text[:end] + '"cpu":"-8"' + text[end + 9 :]


def measure(path: Path) -> dict[str, object]:
    """Read a file; return seconds on the clock and of the processor, peak memory in MiB, and what the reader said."""
    from placement.errors import SnapshotError
    from placement.snapshot.read import load

    began, said = time.perf_counter(), "-"
    try:
        load(path)
    except SnapshotError as error:
        said = str(error.problems[0])
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "processor": time.process_time(), "mebibytes": peak(), "said": said}


def peak() -> float:
    """Return the most memory this process held, in MiB."""
    status = Path("/proc/self/status")
    if status.exists():  # what getrusage says includes what the parent held when it started this process
        return int(re.search(r"VmHWM:\s*(\d+) kB", status.read_text()).group(1)) / 1024  # type: ignore[union-attr]
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(name: str, text: str) -> dict[str, object]:
    """Measure one file in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.json"
        path.write_text(text, "utf-8")
        command = [sys.executable, __file__, "--measure", str(path)]
        found: dict[str, object] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        return found


def main() -> None:
    """Print a table."""
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 200.0
    print(f"| {megabytes:g} MB | seconds | of processor time | MiB at most | said |\n|---|---|---|---|---|")
    for name, text in files(megabytes):
        found = run(name, text)
        times = f"{found['seconds']:.1f} | {found['processor']:.1f}"
        print(f"| {name} | {times} | {found['mebibytes']:.0f} | {found['said']} |")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(Path(sys.argv[2]))))
    else:
        main()
