"""Looks at what nvcc made of kernels: its PTX and what ptxas says of registers and memory.

    kernels.py LOG PTX...

LOG holds the output of nvcc with -Xptxas=-v,-warn-spills, the last compilation of a kernel last; PTX are kept files for
one architecture. Prints a line for each
kernel whose speed matters, and what is wrong; ends with 1 where something is.
"""

import re
import subprocess
import sys
from dataclasses import dataclass


@dataclass
class Rule:
    """What is expected of the kernels whose names have `part` in them."""
    part: str
    registers: int  # at most, on any architecture: what leaves a multiprocessor enough threads
    stack: int = 0  # bytes of local memory a thread at most
    wide: bool = False  # moves 16 bytes in one instruction, both ways
    spilled: int = 0  # bytes that may be spilled, where ptxas prefers more threads
    direct: bool = False  # knows that all it accesses is device memory: no generic loads and stores


# A multiprocessor has 65536 registers: 40 leave it 1536 threads, 64 leave 1024, 128 leave 512, 255 leave 256.
RULES = [
    Rule("copyRowsKernel", 40, wide=True, direct=True),
    Rule("combineRowsKernel", 64, direct=True),
    Rule("compareRowsKernel", 64, direct=True),
    Rule("DofDeviceKernels", 64, direct=True),
    Rule("WithNumber", 64, direct=True),
    Rule("WithElements", 64, direct=True),
    Rule("AddScaled", 64, direct=True),
    Rule("GradientKernel", 255),
    Rule("FluxKernel", 255),
    Rule("UpdateKernel", 128),
    Rule("TimeStepKernel", 128),
    Rule("ResidualKernel", 128),
    Rule("Diffuse", 64, direct=True),
    Rule("6Invert", 255, 8192, spilled=64),  # Newton's method on elements of all types
    Rule("OneSidedLanes", 64, 256, wide=True),
]

# Kernels of CUB and Thrust are as they are.
FOREIGN = re.compile(r"N3cub|N6thrust|N4cuda|3cub|thrust")

# Kernels of one-sided access are there to change words that others change, too; heaps refuse their waits where GPUs are
# shared.
ONE_SIDED = re.compile(r"OneSided|AtomicKernel|GhostWindowView|6Jacobi(7PutRims|4Meet|7Iterate)")

# What no kernel of ours may hold, and why.
FORBIDDEN = [
    (re.compile(r"\bfma\.[a-z.]*f64|\bmad\.[a-z.]*f64"), "fuses a product and a sum: its bits are not the host's"),
    (re.compile(r"\b(div|sqrt|rcp|rsqrt)\.(approx|full)"), "divides or takes roots approximately"),
    (re.compile(r"\bnanosleep|\bld\.acquire|\batom\.|\bred\."),
     "waits for others or adds atomically: where processes share a device, their kernels never run beside each other"),
]

# What no kernel of RULES may hold: all their numbers are of one type.
CONVERSION = re.compile(r"\bcvt(\.\w+)*\.f32\.f64|\bcvt(\.\w+)*\.f64\.f32")


# PTX text after ld or st that move 16 bytes.
WIDE = r"(\.volatile)?(\.global)?(\.nc)?\.(v2\.[bfu]64|v4\.[bfu]32)"


@dataclass
class Kernel:
    name: str
    body: str
    uses: dict  # by architecture: registers, stack, spilled bytes


def read_ptx(path):
    """Bodies of kernels, without the functions that they call."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return {match[1]: match[2] for match in re.finditer(r"\.entry\s+(\S+?)\s*\(.*?\)[^{]*\{(.*?)\n\}", text, re.S)}


def read_log(path):
    """Of each kernel and architecture: registers, bytes of stack, bytes spilled."""
    uses, now = {}, None
    with open(path, encoding="utf-8") as file:
        for line in file:
            if match := re.search(r"Compiling entry function '(\S+)' for '(sm_\w+)'", line):
                now = uses.setdefault(match[1], {}).setdefault(match[2], {"registers": 0, "stack": 0, "spilled": 0})
            elif match := re.search(r"Function properties for (\S+)", line):
                if match[1] not in uses:  # a function that is called
                    now = None
            elif now is not None and (
                    match := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill", line)):
                now["stack"], now["spilled"] = int(match[1]), int(match[2]) + int(match[3])
            elif now is not None and (match := re.search(r"Used (\d+) registers", line)):
                now["registers"] = int(match[1])
    return uses


def named(names):
    """Names that people recognise, where there is a c++filt."""
    try:
        text = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        text = "\n".join(names)
    dull = re.compile(r"\(anonymous namespace\)::|\b(DNDS|Device|compiledByNvcc|Detail|Euler|Heat|Bench)::"
                      r"|^void | (?=>)")
    shown = [dull.sub("", line).split("(")[0].removeprefix("kernelOf") for line in text.splitlines()]
    return dict(zip(names, shown, strict=True))


def wrongs(kernel, rule):
    """What is wrong with a kernel."""
    found = []
    for architecture, use in kernel.uses.items():
        if use["spilled"] > (rule.spilled if rule else 0):
            found.append(f"{architecture}: spills {use['spilled']} bytes")
        # A multiprocessor of sm_75 holds 1024 threads: with 64 registers each it is full.
        most = max(rule.registers, 64 if architecture == "sm_75" else 0) if rule else 0
        if rule and use["registers"] > most:
            found.append(f"{architecture}: {use['registers']} registers, more than {most}")
        if rule and use["stack"] > rule.stack:
            found.append(f"{architecture}: {use['stack']} bytes of local memory a thread, more than {rule.stack}")
    for pattern, why in FORBIDDEN[:-1] if ONE_SIDED.search(kernel.name) else FORBIDDEN:
        if match := pattern.search(kernel.body):
            found.append(f"{match[0].strip()}: {why}")
    if not rule:
        return found
    if match := CONVERSION.search(kernel.body):
        found.append(f"{match[0]}: converts between double and float")
    if rule.wide and not all(re.search(rf"\b{way}{WIDE}", kernel.body) for way in ("ld", "st")):
        found.append("does not load and store 16 bytes at a time")
    if rule.direct and (match := re.search(r"\b(ld|st)\.(v[24]\.)?[bfsu]\d+", kernel.body)):
        found.append(f"{match[0]}: an access to memory of an unknown kind")
    return found


def main(argv):
    uses = read_log(argv[0])
    bodies = {}
    for path in argv[1:]:
        bodies.update(read_ptx(path))
    kernels = [Kernel(name, body, uses.get(name, {})) for name, body in sorted(bodies.items())
               if not FOREIGN.search(name)]
    short = named([kernel.name for kernel in kernels])
    met, bad = set(), []
    for kernel in kernels:
        rule = next((rule for rule in RULES if rule.part in kernel.name), None)
        found = wrongs(kernel, rule)
        bad += [f"{short[kernel.name]}: {wrong}" for wrong in found]
        if not rule:
            continue
        met.add(rule.part)
        registers = "/".join(str(use["registers"]) for _, use in sorted(kernel.uses.items()))
        stack = max([use["stack"] for use in kernel.uses.values()], default=0)
        print(f"  {short[kernel.name][:70]:70} {registers:>12} registers, {stack:>3} bytes of stack")
    bad += [f"there is no kernel {rule.part}: mend RULES in scripts/gpu/kernels.py" for rule in RULES
            if rule.part not in met]
    bad += [f"{short[kernel.name]}: nothing is known of its registers" for kernel in kernels if not kernel.uses]
    for line in bad:
        print(f"WRONG: {line}", file=sys.stderr)
    if not bad:
        print(f"  {len(kernels)} kernels: nothing spilled, fused or approximate; none waits for others")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
