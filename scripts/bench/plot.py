"""Draws ratios over records, a picture for each benchmark: plot.py [NAME]... writes build/bench-history/NAME.svg."""

import math
import sys
import textwrap

import history
import matplotlib
from programs import PROGRAMS

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (after the choice of what draws)

FOLDER = history.ROOT / "build/bench-history"


def draw(lines, title):
    """A picture with axes for each case: a line for each ratio and setting, with bars from quartile to quartile."""
    cases = {}
    for line in lines:
        cases.setdefault(history.name_of(line["case"]), []).append(line)
    records = sorted({(line["date"], line["commit"]) for line in lines})
    across = min(4, len(cases))
    down = math.ceil(len(cases) / across)
    figure, all_axes = plt.subplots(down, across, figsize=(4 * across, 3 * down + 1), squeeze=False)
    for axes in all_axes.flat[len(cases):]:
        axes.axis("off")
    settings = sorted({tuple(line[key] for key in history.SETTING) for line in lines})
    for axes, (name, of_case) in zip(all_axes.flat, cases.items(), strict=False):
        axes.set_title("\n".join(textwrap.wrap(name, 44)), fontsize=8)
        for number, setting in enumerate(settings):
            of_setting = [line for line in of_case if tuple(line[key] for key in history.SETTING) == setting]
            for key in sorted({key for line in of_setting for key in line["ratios"]}):
                points = [(records.index((line["date"], line["commit"])), *line["ratios"][key])
                          for line in of_setting if key in line["ratios"]]
                at, low, middle, high = zip(*points, strict=True)
                label = key.replace("_", " ") + (f" [{number + 1}]" if len(settings) > 1 else "")
                axes.errorbar(at, middle, [[m - one for m, one in zip(middle, low, strict=True)],
                                           [one - m for m, one in zip(middle, high, strict=True)]],
                              marker="o", markersize=3, capsize=2, linewidth=1, label=label)
        axes.axhline(1, color="grey", linewidth=0.5)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:.2g}")
        axes.tick_params(axis="y", which="both", labelsize=6)
        axes.set_xticks(range(len(records)), [f"{date[:10]}\n{commit}" for date, commit in records], fontsize=6,
                        rotation=90)
        axes.legend(fontsize=6)
    named = "; ".join(f"[{number + 1}] {', '.join(map(str, setting))}" for number, setting in enumerate(settings))
    figure.suptitle(f"{title}: {named}", fontsize=9)
    figure.tight_layout()
    return figure


def main(names):
    wrong = [name for name in names if name not in PROGRAMS]
    if wrong:
        sys.exit(f"plot.py: no benchmark is called {wrong[0]}; there are: {', '.join(PROGRAMS)}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in names or PROGRAMS:
        lines = history.read(history.FOLDER / f"{name}.jsonl")
        if lines:
            figure = draw(lines, name)
            figure.savefig(FOLDER / f"{name}.svg")
            plt.close(figure)
            print(FOLDER / f"{name}.svg")


if __name__ == "__main__":
    main(sys.argv[1:])
