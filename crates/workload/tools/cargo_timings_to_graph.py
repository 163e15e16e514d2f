#!/usr/bin/env python3
"""Turns a measured cargo build into a job graph.

A release build is a real graph: hundreds of jobs of very different length, a wide middle and a
long critical path. Cargo says two things about it, and this program joins them:

- `cargo build --release -j 1 --timings` measures each unit (one run of rustc or of a build
  script). Its report is an HTML file with the times as JSON. With one unit at a time nobody else's
  work is in a unit's time, and rustc's own threads have no second CPU token: the time is the work.
- `cargo build --release --unit-graph -Z unstable-options` (with RUSTC_BOOTSTRAP=1; nothing is
  built) prints which unit needs which. The report alone does not: it lists, for each unit, only
  those that became ready by it.

Pipelining. A library that needs a library waits for its metadata, not for its code. So a library
that another one needs becomes two jobs: "X (meta)", rustc's front end, and "X (code)", the rest,
which comes after it. Which edges are of which kind is cargo's rule: one between two plain libraries
in build mode needs metadata; every other one needs code, and a unit that links (program, procedural
macro, build script) needs the code of everything below it, directly or not. The result is checked
against the report: what became ready by a unit must wait for it here, and nothing may have started
before all it waits for.

Times. Cargo rounds them to 10 ms; what it rounded to nothing counts as 5 ms. One second becomes
--micros-per-second microseconds.

Usage:
  cargo_timings_to_graph.py --timings cargo-timing.html --units unit-graph.json \
      --name NAME --source TEXT --micros-per-second N > NAME.json

The output is the format of `paceline frames --graph`. Only names, versions and times of the crates
are kept: no path, no host. Needs Python 3.9 or later and nothing else.
"""

import argparse
import collections
import json
import re
import sys

LIBRARIES = {"lib", "rlib"}
SMALLEST = 0.005  # seconds; half of what cargo rounds to


def fail(message):
    sys.exit(f"cargo_timings_to_graph: {message}")


def read_timings(path):
    """The units of the report, as cargo wrote them."""
    with open(path, encoding="utf-8") as file:
        found = re.search(r"UNIT_DATA\s*=\s*(\[.*?\]);\s*\n", file.read(), re.S)
    if not found:
        fail(f"{path}: there is no UNIT_DATA; is it a report of `cargo build --timings`?")
    return json.loads(found.group(1))


def read_units(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)["units"]


def package(unit):
    """Name and version from a package id: `…#name@1.2.3`, or `…/name#1.2.3`."""
    place, _, rest = unit["pkg_id"].partition("#")
    name, at, version = rest.partition("@")
    return (name, version) if at else (place.rsplit("/", 1)[-1], rest)


def is_library(unit):
    return unit["mode"] == "build" and set(unit["target"]["kind"]) <= LIBRARIES


def target(unit):
    """The unit's target in the words of the timing report."""
    kind = unit["target"]["kind"][0]
    if unit["mode"] == "run-custom-build":
        return " build-script (run)"
    if kind == "custom-build":
        return " build-script"
    if kind == "bin":
        return f' {unit["target"]["name"]} "bin"'
    return ""


def match(timings, units):
    """For each timed unit the index of its unit.

    A crate may be built twice with the same features, for the build and for the result. Then the
    report's "became ready by" pairs, which must be edges of the graph, tell the two apart; a pair
    that they do not tell apart is taken in order, which at worst swaps two times of one crate.
    """
    by_key = collections.defaultdict(list)
    for index, unit in enumerate(units):
        by_key[(*package(unit), target(unit), tuple(sorted(unit["features"])))].append(index)
    candidates = {}
    for timed in timings:
        key = (timed["name"], timed["version"], timed["target"], tuple(sorted(timed["features"])))
        if key not in by_key:
            fail(f"unit {key[0]} {key[1]}{key[2]} was timed but is not in the unit graph; "
                 "were both made with the same version, features and profile?")
        candidates[timed["i"]] = set(by_key[key])
    if len(candidates) != len(units):
        fail(f"{len(candidates)} units were timed, the unit graph has {len(units)}; "
             "was the build complete and from scratch?")

    needs = [{dep["index"] for dep in unit["dependencies"]} for unit in units]
    ready = [(timed["i"], later) for timed in timings
             for later in timed["unblocked_units"] + timed["unblocked_rmeta_units"]]
    matched = {}
    while len(matched) < len(candidates):
        for early, late in ready:
            pairs = [(a, b) for a in candidates[early] for b in candidates[late] if a in needs[b]]
            # No pair: a program waits for units that it does not need directly.
            if pairs:
                candidates[early] = {a for a, _ in pairs}
                candidates[late] = {b for _, b in pairs}
        free = [i for i in candidates if i not in matched]
        sure = [i for i in free if len(candidates[i]) == 1] or free[:1]
        for i in sure:
            matched[i] = min(candidates[i])
            for other in free:
                if other != i and len(candidates[other]) > 1:
                    candidates[other].discard(matched[i])
    if len(set(matched.values())) != len(units):
        fail("two timed units are the same unit of the graph")
    return matched


def edges(units):
    """For each unit what it waits for, as (index, "meta" or "code"): cargo's rule."""
    below = {}

    def everything_below(index):
        if index not in below:
            direct = {dep["index"] for dep in units[index]["dependencies"]}
            below[index] = direct.union(*map(everything_below, direct))
        return below[index]

    result = []
    for index, unit in enumerate(units):
        direct = {dep["index"] for dep in unit["dependencies"]}
        if is_library(unit):
            waits = {(dep, "meta" if is_library(units[dep]) else "code") for dep in direct}
        elif unit["mode"] == "run-custom-build":
            waits = {(dep, "code") for dep in direct}
        else:
            waits = {(dep, "code") for dep in everything_below(index)}
        result.append(waits)
    return result


def check(timings, matched, waits):
    """Fails unless the measured build kept every edge and cargo's own pairs are among them."""
    timed = {matched[t["i"]]: t for t in timings}
    for early in timings:
        for artifact, key in (("code", "unblocked_units"), ("meta", "unblocked_rmeta_units")):
            for late in early[key]:
                if (matched[early["i"]], artifact) not in waits[matched[late]]:
                    fail(f'{early["name"]}{early["target"]} made unit {late} ready by its '
                         f"{artifact}, but the unit graph has no such edge")
    for index, unit in enumerate(waits):
        for dep, artifact in unit:
            length = front_end(timed[dep]) if artifact == "meta" else None
            end = timed[dep]["start"] + (length or timed[dep]["duration"])
            if timed[index]["start"] < end - 4 * SMALLEST:
                fail(f'{timed[index]["name"]} started before the {artifact} of '
                     f'{timed[dep]["name"]}, for which it waits, was there')


def names(timings):
    """A name for each timed unit: with its version, and a number, only where it needs one."""
    plain = {t["i"]: t["name"] + t["target"].replace('"', "") for t in timings}
    versioned = {t["i"]: f'{t["name"]} {t["version"]}' + t["target"].replace('"', "")
                 for t in timings}
    count = collections.Counter(plain.values())
    result, seen = {}, collections.Counter()
    for i, name in plain.items():
        name = name if count[name] == 1 else versioned[i]
        seen[name] += 1
        result[i] = name if seen[name] == 1 else f"{name} #{seen[name]}"
    return result


def front_end(timed):
    """How long the unit took to its metadata, if the report says so."""
    for name, section in timed.get("sections") or []:
        if name == "frontend":
            return section["end"]
    return timed.get("rmeta_time")


def jobs(timings, units, micros_per_second):
    timings = sorted(timings, key=lambda timed: (timed["start"], timed["i"]))
    matched, waits, label = match(timings, units), edges(units), names(timings)
    check(timings, matched, waits)
    name = {matched[i]: text for i, text in label.items()}
    wanted = {dep for unit in waits for dep, artifact in unit if artifact == "meta"}
    split = {matched[t["i"]] for t in timings if front_end(t) is not None} & wanted

    def reference(dep, artifact):
        return f"{name[dep]} ({artifact})" if dep in split else name[dep]

    def job(text, seconds, after):
        nanos = round(max(seconds, SMALLEST) * micros_per_second * 1000)
        time = {"us": nanos // 1000} if nanos % 1000 == 0 else {"ns": nanos}
        return {"label": text, **time, **({"after": after} if after else {})}

    result = []
    for timed in timings:
        index = matched[timed["i"]]
        after = sorted(reference(*wait) for wait in waits[index])
        if index in split:
            meta = front_end(timed)
            result.append((timed["start"], job(reference(index, "meta"), meta, after)))
            code = job(reference(index, "code"), timed["duration"] - meta,
                       [reference(index, "meta")])
            result.append((timed["start"] + meta, code))
        else:
            result.append((timed["start"], job(name[index], timed["duration"], after)))
    return [job for _, job in sorted(result, key=lambda pair: pair[0])]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--timings", required=True, help="report of `cargo build --timings`")
    parser.add_argument("--units", required=True, help="output of `cargo build --unit-graph`")
    parser.add_argument("--name", required=True, help="what the graph is called")
    parser.add_argument("--source", required=True, help="what was built, with what")
    parser.add_argument("--micros-per-second", type=float, required=True,
                        help="what one measured second becomes")
    options = parser.parse_args()
    timings, units = read_timings(options.timings), read_units(options.units)
    head = {
        "name": options.name,
        "source": options.source,
        "unit": "one run of rustc (front end and code generation apart) or of a build script",
        "scale": f"one measured second is {options.micros_per_second:g} microseconds here",
    }
    print("{")
    for key, text in head.items():
        print(f"  {json.dumps(key)}: {json.dumps(text)},")
    lines = [json.dumps(job) for job in jobs(timings, units, options.micros_per_second)]
    print('  "jobs": [\n    ' + ",\n    ".join(lines) + "\n  ]\n}")


if __name__ == "__main__":
    main()
