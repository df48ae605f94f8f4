#!/usr/bin/env python3
"""Draws the roofline of comparisons: bench/roofline.py results.json [more.json ...] > roofline.svg (from
bench/compare.py --json; of one machine with the same number of threads, whose peaks are the first one's).

A program can do no more operations per second than the processor's peak, and no more than it reads bytes per second
times the operations it does on each byte (Williams et al. 2009, doi 10.1145/1498765.1498785). Both limits are those
measured in the same rounds; each point is the median of one test.
"""
import json
import math
import pathlib
import statistics
import sys

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 720, 420, 64, 30, 20, 50
COLOURS = ["#1f6fb2", "#c8501e", "#3b8a3b", "#7d4fa0"]


def decades(values):
    return math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))


def points_of(rounds):
    found = {}
    for entry in rounds:
        for test, one in entry["ours"].items():
            found.setdefault((entry["model"], test), []).append(one)
    return [(model, test, statistics.median(one["ops"] / one["bytes"] for one in ones),
             statistics.median(one["ops"] * one["tokens_per_second"] for one in ones))
            for (model, test), ones in found.items()]


def draw(results):
    points = points_of(results["rounds"])
    bandwidth = statistics.median(one["read_bytes_per_second"] for entry in results["rounds"]
                                  for one in entry["ours"].values())
    isa = results["machine"]["isas"][-1]
    peaks = [(isa[kind]["ops_per_second"], f"{isa[kind]['instruction']} peak")
             for kind in ("matrix", "integer", "float") if kind in isa]
    x_from, x_to = decades([0.3, 3000] + [intensity for _, _, intensity, _ in points])
    y_from, y_to = decades([rate for *_, rate in points] + [peak for peak, _ in peaks])

    def x_at(value):
        return LEFT + (math.log10(value) - x_from) / (x_to - x_from) * (WIDTH - LEFT - RIGHT)

    def y_at(value):
        return HEIGHT - BOTTOM - (math.log10(value) - y_from) / (y_to - y_from) * (HEIGHT - TOP - BOTTOM)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
           'font-size="12">', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']

    def line(x1, y1, x2, y2, style):
        out.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {style}/>')

    def text(x, y, words, style=""):
        out.append(f'<text x="{x:.1f}" y="{y:.1f}" {style}>{words}</text>')

    for power in range(x_from, x_to + 1):
        line(x_at(10**power), TOP, x_at(10**power), HEIGHT - BOTTOM, 'stroke="#ddd"')
        text(x_at(10**power), HEIGHT - BOTTOM + 16, f"{10**power:g}", 'text-anchor="middle"')
    for power in range(y_from, y_to + 1):
        line(LEFT, y_at(10**power), WIDTH - RIGHT, y_at(10**power), 'stroke="#ddd"')
        text(LEFT - 6, y_at(10**power) + 4, f"{10**(power - 9):g}", 'text-anchor="end"')
    text((LEFT + WIDTH) / 2, HEIGHT - 12, "operations per byte read", 'text-anchor="middle"')
    text(LEFT - 50, TOP - 12, "Gop/s")

    top = peaks[0][0]
    start = max(10**x_from, 10**y_from / bandwidth)
    line(x_at(start), y_at(start * bandwidth), x_at(top / bandwidth), y_at(top), 'stroke="black" stroke-width="2"')
    text(x_at(1.15 * start) + 10, y_at(1.15 * start * bandwidth) + 2, f"{bandwidth / 1e9:.0f} GB/s read")
    for peak, name in peaks:
        line(x_at(peak / bandwidth), y_at(peak), WIDTH - RIGHT, y_at(peak), 'stroke="black" stroke-width="2"')
        text(x_at(peak / bandwidth) - 10, y_at(peak) + 4, f"{name}: {peak / 1e9:.0f} Gop/s", 'text-anchor="end"')
    models = list(dict.fromkeys(model for model, *_ in points))
    for i, model in enumerate(models):
        text(LEFT + 14, TOP + 16 + 16 * i, model, f'fill="{COLOURS[i % len(COLOURS)]}"')
    # What no label may be printed over: points and other labels, as (left, baseline, width).
    taken = [(x_at(intensity) - 5, y_at(rate) + 4, 10) for _, _, intensity, rate in points]
    for model, test, intensity, rate in points:
        colour = COLOURS[models.index(model) % len(COLOURS)]
        x, y = x_at(intensity), y_at(rate)
        out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{colour}"/>')
        width = 7 * len(test)
        places = [(x + 8 if right else x - 8 - width, y + 4 + 14 * row) for row in (0, 1, -1, 2, -2, 3, -3)
                  for right in (True, False)]
        free = [place for place in places
                if all(abs(place[1] - other_y) > 12 or place[0] > other_x + other_width or other_x > place[0] + width
                       for other_x, other_y, other_width in taken)]
        label_x, label_y = (free or places)[0]
        taken.append((label_x, label_y, width))
        text(label_x, label_y, test, f'fill="{colour}"')
    return "\n".join(out + ["</svg>"])


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    first, *more = (json.loads(pathlib.Path(path).read_text()) for path in sys.argv[1:])
    print(draw({**first, "rounds": first["rounds"] + [entry for results in more for entry in results["rounds"]]}))
