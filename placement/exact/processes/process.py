"""A solver process as its host sees it: started, listened to, ended.

It is started as a fresh interpreter: a fork would copy the locks of the host's threads, and multiprocessing's spawn
would import the host's main script again.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import placement
from placement.exact.processes.handover import Channel

_HOME = str(Path(__file__).resolve().parents[3])
_PROGRAM = """\
import select, signal, sys, types
# an interrupt at the terminal is for the host, which ends this process if it is to end
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGPROF, signal.SIG_DFL)
descriptor, idle = int(sys.argv[1]), float(sys.argv[2])
first = select.poll()
first.register(descriptor, select.POLLIN)
first.poll(1000 * idle)
# the package's own module imports the judges and the greedy rules, which take long to load and have no work here
package = types.ModuleType("placement")
package.__path__ = sys.argv[3:]
sys.modules["placement"] = package
from placement.exact.processes.child import main
main(descriptor)
"""
AT_ONCE = 0.01
"""Seconds to wait for the end of a killed process where there is a deadline; a large one takes longer to let go of its
memory, and is reaped later."""


class Process:
    """A solver process.

    Parameters
    ----------
    idle : float
        Seconds for which it leaves the machine to others before it loads its libraries, unless a job comes first.

    Attributes
    ----------
    pid : int
    channel : Channel
    """

    def __init__(self, idle: float = 0.0) -> None:
        if not hasattr(socket, "send_fds"):
            raise OSError("this system passes no descriptors between processes")
        if not sys.executable:
            raise OSError("this Python does not know its own program")
        self._host = os.getpid()
        # -P: the working directory may hold anything, and must not be searched unless this process searches it
        paths = [p for p in sys.path if isinstance(p, str) and p]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*paths, _HOME])}
        # Pyomo reads docstrings, which the highest level of optimisation drops
        environment.pop("PYTHONOPTIMIZE", None)
        ours, theirs = socket.socketpair()
        self.channel = Channel(ours)
        self._errors = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed with the process
        try:
            with theirs:
                self._popen = subprocess.Popen(
                    [sys.executable, "-P", "-c", _PROGRAM, str(theirs.fileno()), str(idle), *placement.__path__],
                    stdin=subprocess.DEVNULL,
                    stdout=self._errors,
                    stderr=self._errors,
                    pass_fds=[theirs.fileno()],
                    env=environment,
                )
        except BaseException:
            self.channel.close()
            self._errors.close()
            raise
        self.pid = self._popen.pid

    def alive(self) -> bool:
        """Return whether the process is there; a dead one is reaped."""
        return self._popen.poll() is None

    def forget_errors(self) -> None:
        """Drop what an idle process printed so far, so that `reason` tells of the next job alone."""
        # the process writes at the same position, which must not stay beyond the end
        self._errors.seek(0)
        self._errors.truncate()

    def reason(self) -> str:
        """Return in words how a process ended that hung up, with the last line it printed."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(timeout=1.0)
        code = self._popen.returncode
        how = (
            "stopped answering"
            if code is None
            else f"was killed by signal {-code}"
            if code < 0
            else f"ended with code {code}"
        )
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return f"the solver process {how}" + (f": {lines[-1]}" if lines else "")

    def end(self, patience: float = AT_ONCE) -> None:
        """Kill the process, whatever it is doing; in a fork of the host, only let go of it.

        Parameters
        ----------
        patience : float
            Seconds to wait for its end.
        """
        if os.getpid() == self._host:
            self._popen.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.wait(timeout=patience)
        else:
            # the process is the parent's; here it can be neither killed nor waited for
            self._popen.returncode = 0
        self.channel.close()
        self._errors.close()
