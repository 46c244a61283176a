#!/usr/bin/env python3
"""Kills ranks (SIGKILL) that write checkpoints, at random moments, and looks for what they leave.

    kill_ranks.py WRITER COMMAND...        COMMAND starts ranks, its last word takes their number: mpiexec -n

Each trial starts the writer on another number of ranks. It reads the last checkpoint, compares all of it, and writes
one after the other until a rank is killed, or all at once. No checkpoint that was reported as written may be lost, and
none may be half there. Another DNDS_TEST_SEED: other moments.
"""

import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

START_S = 60


def ranks_of(writer: str, folder: str) -> list[int]:
    """Processes that run the writer on this folder."""
    found = []
    for process in pathlib.Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[:2] == [writer.encode(), folder.encode()]:
                found.append(int(process.name))
    return found


def last_step(lines: list[str]) -> int:
    return max((int(line.split()[1]) for line in lines if line.startswith("step ")), default=-1)


def main() -> int:
    writer, command = sys.argv[1], sys.argv[2:]
    trials = int(os.environ.get("DNDS_KILL_TRIALS", "8"))
    seed = os.environ.get("DNDS_TEST_SEED", "1")
    rng = random.Random(seed)
    known = 0  # the last step that was reported as written
    half = 0
    with tempfile.TemporaryDirectory(prefix="dnds_kill_") as folder:
        for trial in range(trials):
            count = rng.choice([1, 2, 3, 4])
            with open(f"{folder}/output", "w") as output:
                job = subprocess.Popen([*command, str(count), writer, folder], stdout=output, stderr=output)
                lines: list[str] = []
                deadline = time.monotonic() + START_S
                wanted = 1 + (trial == 0)  # at first one must have been written
                while sum(line.startswith("step ") for line in lines) < wanted:
                    if job.poll() is not None or time.monotonic() > deadline:
                        job.kill()
                        print(f"trial {trial} on {count} ranks did not start:")
                        print(pathlib.Path(output.name).read_text())
                        return 1
                    time.sleep(0.01)
                    lines = pathlib.Path(output.name).read_text().splitlines(keepends=True)
                found = int(next(line for line in lines if line.startswith("step ")).split()[1])
                if found < known:
                    print(f"trial {trial}: step {found} was found, but step {known} had been written")
                    return 1
                time.sleep(rng.uniform(0, 0.3))
                ranks = ranks_of(writer, folder)
                for rank in ranks if rng.random() < 0.5 else rng.sample(ranks, 1):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(rank, signal.SIGKILL)
                try:
                    job.wait(30)
                except subprocess.TimeoutExpired:
                    print(f"trial {trial}: the other ranks did not end")
                    job.kill()
                    return 1
            text = pathlib.Path(output.name).read_text()
            lines = [line for line in text.splitlines(keepends=True) if line.endswith("\n")]
            known = max(known, last_step(lines))
            left = pathlib.Path(folder, "checkpoint.h5.part").exists()
            half += left
            note = ", one was half there" if left else ""
            print(f"trial {trial}: {count} ranks, found step {found}, wrote {known}{note}")
        last = subprocess.run([*command, "2", writer, folder, "check"], check=False, capture_output=True, text=True)
        if last.returncode != 0 or last_step(last.stdout.splitlines()) < known:
            print(f"at the end, step {known} is not there: {last.stdout}{last.stderr}")
            return 1
    print(f"{trials} trials with seed {seed}, {half} of them killed ranks behind half a file; nothing was lost")
    if trials >= 8 and half == 0:
        print("not once was a rank killed while it wrote: this has tested nothing")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
