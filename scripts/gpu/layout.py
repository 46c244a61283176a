"""Compares what kernels' arguments take in device code with what the host passes: the layout gate.

    layout.py --objects OBJECT... --ptx PTX...

PTX declares each parameter of a kernel with its size as nvcc lays it out in device code. Objects compiled with
-Iscripts/gpu/layout hold the host's sizeof of each argument. Where the two differ, the kernel reads its members at
other offsets than the host wrote them. Kernels named memberAfter (test/CUDA/real/LayoutKernels.cu) read a member of
their first argument, whose offset on the host is the size of their second argument. Ends with 1 where a kernel differs,
or is missing on one side.
"""

import argparse
import re
import struct
import sys

from kernels import named

SIZES = {"8": 1, "16": 2, "32": 4, "64": 8}


def device_sizes(texts):
    """Of each kernel in PTX: the sizes of its parameters; and of memberAfter, where it reads the member."""
    found, read = {}, {}
    for text in texts:
        for entry in re.finditer(r"\.entry\s+(\S+?)\s*\((.*?)\)", text, re.S):
            found[entry[1]] = [SIZES[bits] * int(count or 1) for bits, count in re.findall(
                r"\.param\s+(?:\.align\s+\d+\s+)?\.[bfsu](\d+)\s+(?:\.ptr\S*\s+(?:\.align\s+\d+\s+)?)?[\w$]+(?:\[(\d+)\])?",
                entry[2])]
            if "memberAfter" in entry[1]:
                body = text[entry.end():text.index("\n}", entry.end())]
                place = re.escape(entry[1]) + r"_param_0(?:\+(\d+))?"
                load = re.search(rf"ld\.param\.[bf]64\s+%\w+,\s*\[{place}\]", body)
                read[entry[1]] = int(load[1] or 0) if load else None
    return found, read


def host_sizes(paths):
    """Of each kernel: the sizes of its arguments on the host."""
    found = {}
    for path in paths:
        with open(path, "rb") as file:
            content = file.read()
        for record in re.finditer(rb"DNDSARG1(.{4})(.{4})__device_stub_([^\0]+)\0", content, re.S):
            (argument,), (size,) = (struct.unpack("<I", record[group]) for group in (1, 2))
            found.setdefault(record[3].decode(), {})[argument] = size
    return {name: [sizes[argument] for argument in sorted(sizes)] for name, sizes in found.items()}


def differences(device, host):
    """What differs, by kernel."""
    wrong = {}
    for name, sizes in device.items():
        if name not in host:
            if sizes:
                wrong[name] = "no object says what the host passes: was it compiled with -Iscripts/gpu/layout?"
        elif sizes != host[name]:
            wrong[name] = f"arguments of {sizes} bytes in device code, of {host[name]} on the host"
    for name in host.keys() - device.keys():
        wrong[name] = "no PTX has it"
    return wrong


def main(argv):
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--objects", nargs="+", required=True)
    parser.add_argument("--ptx", nargs="+", required=True)
    options = parser.parse_args(argv)
    texts = []
    for path in options.ptx:
        with open(path, encoding="utf-8") as file:
            texts.append(file.read())
    (device, read), host = device_sizes(texts), host_sizes(options.objects)
    wrong = differences(device, host)
    for name, offset in read.items():
        if offset != device[name][1]:
            wrong[name] = f"device code reads the member after {offset} bytes, the host puts it after {device[name][1]}"
    short = named(list(wrong))
    for name, text in sorted(wrong.items()):
        print(f"WRONG: {short[name]}: {text}", file=sys.stderr)
    if not device:
        print("WRONG: no kernel was found", file=sys.stderr)
    elif not wrong:
        print(f"  {len(device)} kernels: arguments have the same sizes in device code and on the host, "
              f"and the member after each of {len(read)} types of views the same offset")
    return 1 if wrong or not device else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
