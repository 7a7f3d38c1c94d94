#!/usr/bin/env python3
"""Compares Ignis with its peers on ONNX models: time, answers, time to the first result, memory.

Each engine takes its turn in a process of its own, in the order A B C A B C …, with equal inputs and numbers of threads. A
ratio is the peer's median divided by Ignis' median of the same round: above 1, Ignis is faster; its spread is that of the
rounds. Exit status: 0; 1 when an output differs from the first peer's beyond the tolerance; 3 when Ignis did not run a model.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import models

ROOT = Path(__file__).resolve().parent.parent
PEERS = ["onnxruntime", "openvino", "ncnn", "tinygrad"]


def run_process(arguments, limit):
    """Runs to the end; returns the peak of its resident memory in bytes."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as output:
        report = Path(folder) / "report.json"
        subprocess.run([sys.executable, "-S", ROOT / "bench" / "watch.py", report, str(limit), *map(str, arguments)],
                       stdout=output, stderr=output, timeout=limit + 30, check=True)
        result = json.loads(report.read_text())
        if result["status"] != 0:
            output.seek(0)
            text = output.read().decode(errors="replace").strip().splitlines()
            raise RuntimeError(f"ends with {result['status']}: {' '.join(text[-2:])[-300:]}")
        return result["peak"]


def ignis_arguments(job):
    arguments = [job["model"], "--threads", job["threads"]]
    for name, file in job["inputs"].items():
        arguments += ["--input", f"{name}=@{file}"]
    for name, value in job["dims"].items():
        arguments += ["--dim", f"{name}={value}"]
    return arguments


def turn_of_ignis(job, options):
    report_path = Path(job["folder"]) / "ignis.json"
    outputs = [Path(job["folder"]) / f"ignis.{index}.npy" for index in range(len(job["outputs"]))]
    wanted = []
    for name, file in zip(job["outputs"], outputs):
        wanted += ["--output", f"{name}=@{file}"]
    # A run of its own for answers and memory: `bench` also measures what the program cache does.
    peak = run_process([options.ignis, "run", *ignis_arguments(job), "--cache", "off", *wanted], options.limit)
    run_process([options.ignis, "bench", *ignis_arguments(job), "--warmup", int(job["warmup"] * 1000), "--duration",
                 job["duration"], f"--json={report_path}"], options.limit)
    report = json.loads(report_path.read_text())
    compiled = report.get("compile", {})
    first = compiled.get("cold", report["stages"])["time_to_first_result_s"]
    warm = compiled.get("disk_hit", report["stages"])["time_to_first_result_s"]
    return {"median": report["steady"]["p50_s"], "min": report["steady"]["min_s"], "first": first, "warm": warm,
            "peak": peak, "start": options.ignis_start, "outputs": [np.load(file) for file in outputs]}


def turn_of_peer(peer, job, options):
    job_path = Path(job["folder"]) / f"{peer}.job.json"
    job_path.write_text(json.dumps(job))
    peak = run_process([sys.executable, ROOT / "bench" / "peers.py", peer, job_path], options.limit)
    report = json.loads((Path(job["folder"]) / f"{peer}.json").read_text())
    return {"median": statistics.median(report["samples"]), "min": min(report["samples"]), "first": report["first"],
            "warm": None, "peak": peak, "start": report["start"], "outputs": [np.load(file) for file in report["outputs"]]}


def difference(got, want, atol, rtol):
    """Largest absolute difference and the number of elements beyond atol + rtol * |want|."""
    if got.size != want.size:
        return float("inf"), max(got.size, want.size)
    # ncnn knows no batch axis.
    got, want = got.astype(np.float64).ravel(), want.astype(np.float64).ravel()
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    apart = np.where(same, 0.0, np.abs(got - want))
    apart = np.where(np.isnan(apart), np.inf, apart)
    finite = np.where(np.isfinite(want), np.abs(want), 0.0)
    worst = float(apart.max()) if apart.size else 0.0
    return worst, int((apart > atol + rtol * finite).sum())


def compare_model(path, threads, options):
    arrays, outputs = models.make_inputs(path, options.dims, options.values)
    with tempfile.TemporaryDirectory(prefix="ignis-compare-") as folder:
        inputs = {}
        for index, (name, array) in enumerate(arrays.items()):
            inputs[name] = str(Path(folder) / f"input.{index}.npy")
            np.save(inputs[name], array)
        turns = {engine: [] for engine in ["ignis", *options.peers]}
        errors = {}
        for _ in range(options.rounds):
            for engine in list(turns):
                if engine in errors:
                    continue
                cache = Path(folder) / f"cache.{engine}"
                cache.mkdir(exist_ok=True)
                job = {"model": str(path.resolve()), "folder": folder, "inputs": inputs, "outputs": outputs,
                       "dims": options.dims, "threads": threads, "warmup": options.warmup,
                       "duration": options.duration, "limit": options.limit, "cache": str(cache)}
                try:
                    turn = turn_of_ignis(job, options) if engine == "ignis" else turn_of_peer(engine, job, options)
                    turns[engine].append(turn)
                except (RuntimeError, OSError, KeyError, ValueError, subprocess.SubprocessError) as error:
                    errors[engine] = str(error)
        row = {"model": path.stem, "threads": threads, "flops": models.count_flops(path, arrays), "engines": {},
               "errors": errors}
        for engine, results in turns.items():
            if engine not in errors:
                row["engines"][engine] = summarize(engine, results, turns, row, options)
        return row


def summarize(engine, results, turns, row, options):
    made = {"median": statistics.median(r["median"] for r in results), "min": min(r["min"] for r in results),
            "first": results[0]["first"], "warm": None, "peak": statistics.median(r["peak"] for r in results),
            "start": statistics.median(r["start"] for r in results)}
    # A peer's later turns find what its first one left on disk.
    warm = [r["warm"] or r["first"] for r in (results if results[0]["warm"] else results[1:])]
    if warm:
        made["warm"] = statistics.median(warm)
    made["share_of_peak"] = (row["flops"] / made["median"] / (options.peak * row["threads"])
                             if row["flops"] else None)
    ours = turns["ignis"]
    if engine != "ignis" and len(ours) == len(results):
        ratios = sorted(theirs["median"] / mine["median"] for theirs, mine in zip(results, ours))
        made["ratio"], made["ratio_low"], made["ratio_high"] = statistics.median(ratios), ratios[0], ratios[-1]
        worst, beyond = 0.0, 0
        for got, want in zip(ours[-1]["outputs"], results[-1]["outputs"]):
            apart, count = difference(got, want, options.atol, options.rtol)
            worst, beyond = max(worst, apart), beyond + count
        made["worst"], made["beyond"] = worst, beyond
    return made


HEADER = (f"{'model':<22}{'engine':<13}{'median ms':>10}{'min ms':>10}{'ratio':>7}{'spread':>13}{'% peak':>8}"
          f"{'first ms':>10}{'warm ms':>9}{'peak MB':>9}{'+MB':>6}{'worst diff':>12}{'beyond':>8}")


def print_row(row):
    for engine in ["ignis", *PEERS]:
        if engine in row["errors"]:
            print(f"{row['model']:<22}{engine:<13}did not run: {row['errors'][engine]}")
        if engine not in row["engines"]:
            continue
        r = row["engines"][engine]
        ratio = f"{r['ratio']:>7.2f}{r['ratio_low']:>7.2f}-{r['ratio_high']:<5.2f}" if "ratio" in r else " " * 20
        share = f"{100 * r['share_of_peak']:>8.0f}" if r["share_of_peak"] else " " * 8
        warm = f"{r['warm'] * 1e3:>9.1f}" if r["warm"] else " " * 9
        memory = f"{r['peak'] / 2**20:>9.0f}{(r['peak'] - r['start']) / 2**20:>6.0f}"
        apart = f"{r['worst']:>12.2e}{r['beyond']:>8}" if "worst" in r else ""
        print(f"{row['model']:<22}{engine:<13}{r['median'] * 1e3:>10.4f}{r['min'] * 1e3:>10.4f}{ratio}{share}"
              f"{r['first'] * 1e3:>10.1f}{warm}{memory}{apart}")
    sys.stdout.flush()


def print_means(rows, threads):
    rows = [row for row in rows if row["threads"] == threads]
    for peer in PEERS:
        ratios = [row["engines"][peer]["ratio"] for row in rows if "ratio" in row["engines"].get(peer, {})]
        if ratios:
            print(f"{threads} thread(s): geometric mean over {peer}: {statistics.geometric_mean(ratios):.3f} "
                  f"({len(ratios)} models)")
    best = []
    for row in rows:
        ratios = [row["engines"][peer]["ratio"] for peer in PEERS if "ratio" in row["engines"].get(peer, {})]
        if ratios:
            best.append(min(ratios))
    if best:
        print(f"{threads} thread(s): geometric mean over the best peer of each model: "
              f"{statistics.geometric_mean(best):.3f}")


def measure_peak(tool):
    """Float32 FLOP/s of one core, in registers."""
    run = subprocess.run([tool, "devices", "--roofline", "--threads", "1", "--json"], capture_output=True, check=True)
    return json.loads(run.stdout)["roofline"]["flops_per_s"]


def parse_pairs(pairs, convert):
    return {name: convert(value) for name, _, value in (pair.partition("=") for pair in pairs)}


def default_tool():
    for build in ("bench", "release", "dev"):
        tool = ROOT / "build" / build / "tools" / "ignis" / "ignis"
        if tool.exists():
            return str(tool)
    return "ignis"


def parse_options():
    parser = argparse.ArgumentParser(prog="bench/compare", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="networks",
                        help="comma list of files, names, 'networks' (default), 'operators', 'odd' and 'attention'")
    parser.add_argument("--peers", default=",".join(PEERS), help="comma list (default: all)")
    parser.add_argument("--threads", default="1,2", help="comma list of numbers of threads (default: 1,2)")
    parser.add_argument("--ignis", default=default_tool(), help="the tool's path")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each engine")
    parser.add_argument("--warmup", type=float, default=0.2, help="seconds before measuring, in each turn")
    parser.add_argument("--duration", type=float, default=1.0, help="seconds of measuring, in each turn")
    parser.add_argument("--limit", type=float, default=300, help="seconds after which a process is given up")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=N", help="an open dimension")
    parser.add_argument("--value", action="append", default=[], metavar="INPUT=JSON", help="an input's value")
    parser.add_argument("--atol", type=float, default=1e-4)
    parser.add_argument("--rtol", type=float, default=1e-4)
    parser.add_argument("--shared", type=Path, default=Path(os.environ.get("IGNIS_SHARED", ROOT.parent / "shared")),
                        help="where the named models come from")
    parser.add_argument("--json", type=Path, help="write all rows to this file")
    options = parser.parse_args()
    options.dims = parse_pairs(options.dim, int)
    options.values = parse_pairs(options.value, json.loads)
    options.peers = [peer for peer in options.peers.split(",") if peer]
    for peer in options.peers:
        if peer not in PEERS:
            parser.error(f"'{peer}' is no peer; there are {', '.join(PEERS)}")
    options.threads = [int(count) for count in options.threads.split(",")]
    cache = ROOT / ".cache" / "bench-models"
    cache.mkdir(parents=True, exist_ok=True)
    try:
        options.paths = models.find([name for name in options.models.split(",") if name], options.shared, cache)
    except (ValueError, OSError, subprocess.CalledProcessError) as error:
        parser.error(str(error))
    return options


def main():
    options = parse_options()
    options.peak = measure_peak(options.ignis)
    options.ignis_start = run_process([options.ignis, "--version"], options.limit)
    print(f"{options.rounds} turns of {options.duration} s on {os.cpu_count()} CPUs; one core does at most "
          f"{options.peak * 1e-9:.0f} GFLOP/s; ratio = peer / Ignis")
    print(HEADER)
    status, rows = 0, []
    for threads in options.threads:
        for path in options.paths:
            try:
                row = compare_model(path, threads, options)
            except (ValueError, OSError) as error:
                row = {"model": path.stem, "threads": threads, "engines": {}, "errors": {"ignis": str(error)}}
            print_row(row)
            rows.append(row)
            if "ignis" in row["errors"]:
                status = 3
            elif options.peers and row["engines"].get(options.peers[0], {}).get("beyond", 0) > 0:
                status = max(status, 1)
    for threads in options.threads:
        print_means(rows, threads)
    if options.json:
        options.json.write_text(json.dumps({"peak_flops": options.peak, "rows": rows}, indent=2))
    return status


if __name__ == "__main__":
    sys.exit(main())
