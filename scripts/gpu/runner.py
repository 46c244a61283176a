"""Runs commands within a time budget, each in a process group of its own, and leaves no process running."""

import itertools
import os
import signal
import subprocess
import threading
import time


class Runner:
    """Knows when the whole run must have ended, and keeps the log of each command in a file. Several threads may run
    commands at once."""

    def __init__(self, budget, log_folder, environment=None):
        self.start = time.monotonic()
        self.deadline = self.start + budget
        self.log_folder = log_folder
        self.environment = dict(os.environ if environment is None else environment)
        self._numbers = itertools.count()
        self._live = {}  # number of a command -> its process
        self._lock = threading.Lock()
        os.makedirs(log_folder, exist_ok=True)

    def elapsed(self):
        return time.monotonic() - self.start

    def left(self):
        return self.deadline - time.monotonic()

    def run(self, name, command, limit, environment=None, folder=None):
        """Runs a command for at most `limit` seconds and not beyond the deadline. Returns a dictionary: name, status
        (passed, failed, skipped, out of time), seconds, code, log (a path), why. A command that finds no time left is
        not started (status: not run). Exit code 77 is a skip."""
        limit = min(limit, self.left())
        log = os.path.join(self.log_folder, f"{name.replace(' ', '-').replace('/', '-')}.log")
        if limit < 1:
            return {"name": name, "status": "not run", "seconds": 0.0, "code": None, "log": None,
                    "why": "no time was left"}
        began = time.monotonic()
        out_of_time = False
        # Tells the processes of this command from others: what a launcher moved to another group is found by it.
        number = next(self._numbers)
        mark = f"DNDS_GPU_CHECK_RUN={os.getpid()}.{int(self.start)}.{number}"
        key, value = mark.split("=")
        with open(log, "wb") as output:
            output.write((" ".join(command) + "\n").encode())
            output.flush()
            try:
                process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                           cwd=folder, env={**self.environment, **(environment or {}), key: value},
                                           start_new_session=True)
            except OSError as error:
                output.write(f"{error}\n".encode())
                return {"name": name, "status": "failed", "seconds": 0.0, "code": None, "log": log, "why": str(error)}
            with self._lock:
                self._live[number] = process
            try:
                code = process.wait(timeout=limit)
            except subprocess.TimeoutExpired:
                out_of_time = True
                code = self._stop(process)
            finally:
                with self._lock:
                    del self._live[number]
        self._stop_strays(mark)
        result = {"name": name, "seconds": round(time.monotonic() - began, 2), "code": code, "log": log,
                  "status": "out of time" if out_of_time else "passed" if code == 0 else
                            "skipped" if code == 77 else "failed"}
        if out_of_time:
            result["why"] = f"stopped after {limit:.0f} s"
        return result

    def abort(self):
        """Stops what other threads run, so that they return."""
        self.deadline = time.monotonic()
        with self._lock:
            live = list(self._live.values())
        for process in live:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def _stop(self, process):
        """First politely, so that a launcher ends its ranks; then by force."""
        for number, patience in ((signal.SIGTERM, 4), (signal.SIGKILL, 5)):
            try:
                os.killpg(process.pid, number)
            except ProcessLookupError:
                pass
            try:
                return process.wait(timeout=patience)
            except subprocess.TimeoutExpired:
                continue
        return None  # stuck in the kernel; nothing more can be done

    def _stop_strays(self, mark):
        """Ends processes of a command that left its group, such as ranks whose launcher was killed."""
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or int(entry) == os.getpid():
                continue
            try:
                with open(f"/proc/{entry}/environ", "rb") as file:
                    ours = mark.encode() in file.read().split(b"\0")
                if ours:
                    os.kill(int(entry), signal.SIGKILL)
            except OSError:
                continue  # has ended meanwhile, or belongs to another user


def tail(path, lines=25, characters=4000):
    """The end of a log."""
    if not path or not os.path.exists(path):
        return ""
    with open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - 4 * characters))
        text = file.read().decode(errors="replace")
    return "\n".join(text.splitlines()[-lines:])[-characters:]
