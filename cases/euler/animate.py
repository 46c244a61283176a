#!/usr/bin/env python3
"""Makes an animated GIF of the pictures that euler writes while it computes.

    animate.py FOLDER [--output GIF] [--width PIXELS] [--follow]

FOLDER is that of a run with "output": {"picture": ...}; give a "range", so that colours mean the same in all of them.
The file is FOLDER/pictures.gif unless --output names another; it has half of the colours. --follow shows the newest
picture on a terminal, above the progress of the run, which comes through a pipe:

    mpiexec -n 4 euler case.json --progress line | animate.py FOLDER --follow

Needs Pillow, which comes with Matplotlib.
"""

import argparse
import os
import pathlib
import select
import shutil
import sys

from PIL import Image


def pictures(folder):
    return sorted(folder.glob("picture-*.png"))


def animate(paths, output, width):
    """Six to ten seconds, the last picture two more."""
    frames = []
    for path in paths:
        with Image.open(path) as image:
            height = round(image.height * width / image.width)
            small = image.resize((width, height), Image.Resampling.NEAREST)  # keeps the common palette
            frames.append(small.point([colour and colour | 1 for colour in range(256)]))
    each = max(40, min(250, 8000 // len(frames)))
    frames[0].save(output, save_all=True, append_images=frames[1:], loop=0,
                   duration=[each] * (len(frames) - 1) + [2000])


def in_characters(path, columns):
    """Lines of half blocks, each two pixels on top of each other, in 24-bit colours."""
    with Image.open(path) as image:
        rows = max(1, round(columns * image.height / image.width / 2))
        small = image.convert("RGB").resize((columns, 2 * rows), Image.Resampling.BOX)
    pixels = small.load()
    lines = []
    for row in range(rows):
        line = ""
        for column in range(columns):
            upper, lower = pixels[column, 2 * row], pixels[column, 2 * row + 1]
            line += "\033[38;2;{};{};{}m\033[48;2;{};{};{}m▀".format(*upper, *lower)
        lines.append(line + "\033[0m")
    return lines


class Screen:
    """The newest picture and a line of progress below it, rewritten in place; other lines scroll by above."""

    def __init__(self):
        self._drawn = 0
        self._picture = []

    def show(self, lines, progress, picture):
        columns = shutil.get_terminal_size().columns
        if picture is not None:
            self._picture = in_characters(picture, min(columns - 1, 110))
        back = f"\033[{self._drawn}A" if self._drawn else ""
        below = [*self._picture, progress[: columns - 1]]
        sys.stdout.write(back + "\r\033[J" + "".join(f"{line}\n" for line in [*lines, *below]))
        sys.stdout.flush()
        self._drawn = len(below)


def follow(folder):
    """Until the input ends."""
    screen = Screen()
    shown, progress, told, text = None, "", "", ""
    while True:
        if select.select([sys.stdin], [], [], 0.2)[0]:
            chunk = os.read(sys.stdin.fileno(), 1 << 16)
            if not chunk:
                break
            text += chunk.decode("utf-8", "replace")
        *lines, text = text.split("\n")
        *_, last = text.split("\r")
        progress = last.replace("\033[K", "") or progress
        text = last
        lines = [line.split("\r")[-1].replace("\033[K", "") for line in lines]
        newest = pictures(folder)[-1:]
        fresh = newest[0] if newest and newest[0] != shown else None
        shown = fresh or shown
        if lines or fresh or progress != told:
            screen.show(lines, progress, fresh)
        told = progress
    screen.show([text] if text else [], "", None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--width", type=int, default=480)
    parser.add_argument("--follow", action="store_true")
    arguments = parser.parse_args()
    if arguments.follow:
        follow(arguments.folder)
    paths = pictures(arguments.folder)
    if not paths:
        sys.exit(f"animate.py: {arguments.folder} has no picture-*.png")
    output = arguments.output or arguments.folder / "pictures.gif"
    animate(paths, output, arguments.width)
    print(f"{output}: {len(paths)} pictures, {output.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
