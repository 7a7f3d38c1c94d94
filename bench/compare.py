#!/usr/bin/env python3
"""Compares the latency and the answers of Ignis and ONNX Runtime on ONNX models.

Runs the engines in turns, each turn in a process of its own, with equal inputs and numbers of threads. Prints one line
for each model: median and least latency of both, their ratio (Ignis / ONNX Runtime: under 1 is faster) and the largest
difference of the outputs. Exit status: 0, or 1 when an output differs beyond the tolerance, or 3 when a model did not
run.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

WORKER = "--onnxruntime-worker"


# ---- models and inputs ----------------------------------------------------------------------------------------------


def model_inputs(path, dims, values):
    """Arrays for the graph inputs of a model: stored ones, given ones, else random ones of a fixed seed."""
    import onnx
    from onnx import helper

    model = onnx.load(path, load_external_data=False)
    constants = {tensor.name for tensor in model.graph.initializer}
    rng = np.random.default_rng(20)
    arrays = {}
    for graph_input in model.graph.input:
        name = graph_input.name
        if name in constants:
            continue
        tensor_type = graph_input.type.tensor_type
        dtype = helper.tensor_dtype_to_np_dtype(tensor_type.elem_type)
        stored = path.with_name(f"{path.stem}.{name}.npy")
        if name in values:
            arrays[name] = np.asarray(values[name], dtype=dtype)
        elif stored.exists():
            arrays[name] = np.load(stored)
        else:
            shape = []
            for dim in tensor_type.shape.dim:
                known = dim.dim_value if dim.HasField("dim_value") else dims.get(dim.dim_param)
                if known is None:
                    raise ValueError(f"{path}: input '{name}' has the open dimension '{dim.dim_param}'; "
                                     f"give it with --dim {dim.dim_param}=N")
                shape.append(known)
            if dtype.kind == "f":
                arrays[name] = rng.random(shape, dtype=np.float32).astype(dtype)
            elif dtype.kind == "b":
                arrays[name] = rng.integers(0, 2, shape).astype(bool)
            else:
                arrays[name] = rng.integers(0, 100, shape).astype(dtype)
    return arrays


# ---- the engines ----------------------------------------------------------------------------------------------------


def onnxruntime_worker(job_path):
    """One turn of ONNX Runtime: reads the job, writes latencies and outputs."""
    import onnxruntime

    job = json.loads(Path(job_path).read_text())
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = job["threads"]
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    start = time.perf_counter()
    session = onnxruntime.InferenceSession(job["model"], options, providers=["CPUExecutionProvider"])
    feeds = {name: np.load(file) for name, file in job["inputs"].items()}
    outputs = session.run(None, feeds)
    first = time.perf_counter() - start
    warm_until = time.perf_counter() + job["warmup"]
    while time.perf_counter() < warm_until:
        session.run(None, feeds)
    samples = []
    stop_at = time.perf_counter() + job["duration"]
    while time.perf_counter() < stop_at or len(samples) < 5:
        begin = time.perf_counter()
        session.run(None, feeds)
        samples.append(time.perf_counter() - begin)
    names = [output.name for output in session.get_outputs()]
    for index, value in enumerate(outputs):
        np.save(Path(job["folder"]) / f"onnxruntime.{index}.npy", value)
    report = {"samples": samples, "first": first, "outputs": names}
    (Path(job["folder"]) / "onnxruntime.json").write_text(json.dumps(report))


def run_onnxruntime(job, limit):
    job_path = Path(job["folder"]) / "job.json"
    job_path.write_text(json.dumps(job))
    run_process([sys.executable, __file__, WORKER, str(job_path)], limit)
    report = json.loads((Path(job["folder"]) / "onnxruntime.json").read_text())
    return {"median": statistics.median(report["samples"]), "min": min(report["samples"]),
            "first": report["first"], "outputs": report["outputs"]}


def ignis_arguments(job):
    arguments = [job["model"], "--threads", str(job["threads"])]
    for name, file in job["inputs"].items():
        arguments += ["--input", f"{name}=@{file}"]
    for name, value in job["dims"].items():
        arguments += ["--dim", f"{name}={value}"]
    return arguments


def run_ignis(job, tool, limit):
    report_path = Path(job["folder"]) / "ignis.json"
    # The first result counts the compiler, as with the others: no programs of an earlier run.
    run_process([tool, "bench", *ignis_arguments(job), "--cache", "off", "--warmup", str(int(job["warmup"] * 1000)),
                 "--duration", str(job["duration"]), f"--json={report_path}"], limit)
    report = json.loads(report_path.read_text())
    return {"median": report["steady"]["p50_s"], "min": report["steady"]["min_s"],
            "first": report["stages"]["time_to_first_result_s"]}


def ignis_outputs(job, tool, names, limit):
    arguments = [tool, "run", *ignis_arguments(job)]
    files = [Path(job["folder"]) / f"ignis.{index}.npy" for index in range(len(names))]
    for name, file in zip(names, files):
        arguments += ["--output", f"{name}=@{file}"]
    run_process(arguments, limit)
    return [np.load(file) for file in files]


def run_process(arguments, limit):
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=limit, check=False)
    if done.returncode != 0:
        message = (done.stderr.strip() or done.stdout.strip())[-600:]
        raise RuntimeError(f"{Path(arguments[0]).name} {arguments[1]} ends with {done.returncode}: {message}")


# ---- comparison -----------------------------------------------------------------------------------------------------


def difference(got, want, atol, rtol):
    """Largest absolute difference and the number of elements beyond atol + rtol * |want|."""
    if got.shape != want.shape:
        return float("inf"), max(got.size, want.size)
    got, want = got.astype(np.float64), want.astype(np.float64)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    apart = np.where(same, 0.0, np.abs(got - want))
    apart = np.where(np.isnan(apart), np.inf, apart)
    finite = np.where(np.isfinite(want), np.abs(want), 0.0)
    worst = float(apart.max()) if apart.size else 0.0
    return worst, int((apart > atol + rtol * finite).sum())


def compare_model(path, options):
    with tempfile.TemporaryDirectory(prefix="ignis-compare-") as folder:
        arrays = model_inputs(path, options.dims, options.values)
        files = {}
        for index, (name, array) in enumerate(arrays.items()):
            files[name] = str(Path(folder) / f"input.{index}.npy")
            np.save(files[name], array)
        job = {"model": str(path), "folder": folder, "inputs": files, "dims": options.dims,
               "threads": options.threads, "warmup": options.warmup, "duration": options.duration}
        turns = {"ignis": [], "onnxruntime": []}
        for _ in range(options.rounds):
            turns["ignis"].append(run_ignis(job, options.ignis, options.limit))
            turns["onnxruntime"].append(run_onnxruntime(job, options.limit))
        names = turns["onnxruntime"][-1]["outputs"]
        worst, beyond = 0.0, 0
        for index, got in enumerate(ignis_outputs(job, options.ignis, names, options.limit)):
            want = np.load(Path(folder) / f"onnxruntime.{index}.npy")
            apart, count = difference(got, want, options.atol, options.rtol)
            worst, beyond = max(worst, apart), beyond + count
    row = {"model": path.stem, "threads": options.threads, "worst": worst, "beyond": beyond}
    for engine, results in turns.items():
        row[engine] = {key: statistics.median(r[key] for r in results) for key in ("median", "first")}
        row[engine]["min"] = min(r["min"] for r in results)
    row["ratio"] = row["ignis"]["median"] / row["onnxruntime"]["median"]
    row["ratio_min"] = row["ignis"]["min"] / row["onnxruntime"]["min"]
    return row


HEADER = (f"{'model':<24}{'ignis ms':>10}{'ort ms':>10}{'ratio':>7}{'min ms':>10}{'ort min':>10}"
          f"{'ratio':>7}{'first ms':>10}{'worst diff':>12}{'beyond':>8}")


def format_row(row):
    ours, theirs = row["ignis"], row["onnxruntime"]
    return (f"{row['model']:<24}{ours['median'] * 1e3:>10.4f}{theirs['median'] * 1e3:>10.4f}{row['ratio']:>7.2f}"
            f"{ours['min'] * 1e3:>10.4f}{theirs['min'] * 1e3:>10.4f}{row['ratio_min']:>7.2f}"
            f"{ours['first'] * 1e3:>10.1f}{row['worst']:>12.2e}{row['beyond']:>8}")


def parse_pairs(pairs, convert):
    return {name: convert(value) for name, _, value in (pair.partition("=") for pair in pairs)}


def main():
    if len(sys.argv) == 3 and sys.argv[1] == WORKER:
        onnxruntime_worker(sys.argv[2])
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL.onnx")
    parser.add_argument("--ignis", default="ignis", help="the tool's path")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5, help="turns of each engine")
    parser.add_argument("--warmup", type=float, default=0.2, help="seconds before measuring, in each turn")
    parser.add_argument("--duration", type=float, default=1.0, help="seconds of measuring, in each turn")
    parser.add_argument("--limit", type=float, default=300, help="seconds after which a process is given up")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=N", help="an open dimension")
    parser.add_argument("--value", action="append", default=[], metavar="INPUT=JSON", help="an input's value")
    parser.add_argument("--atol", type=float, default=1e-4)
    parser.add_argument("--rtol", type=float, default=1e-4)
    parser.add_argument("--json", type=Path, help="write all rows to this file")
    options = parser.parse_args()
    options.dims = parse_pairs(options.dim, int)
    options.values = parse_pairs(options.value, json.loads)

    status, rows = 0, []
    print(f"{options.threads} thread(s), {options.rounds} turns of {options.duration} s, on {os.cpu_count()} CPUs")
    print(HEADER)
    for path in options.models:
        try:
            row = compare_model(path, options)
        except (RuntimeError, ValueError, KeyError, OSError, subprocess.TimeoutExpired) as error:
            print(f"{path.stem:<24}  did not run: {error}")
            rows.append({"model": path.stem, "error": str(error)})
            status = 3
            continue
        print(format_row(row), flush=True)
        rows.append(row)
        if row["beyond"] > 0 and status == 0:
            status = 1
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    if ratios:
        print(f"geometric mean of the ratios: {statistics.geometric_mean(ratios):.3f} over {len(ratios)} models")
    if options.json:
        options.json.write_text(json.dumps({"threads": options.threads, "rows": rows}, indent=2))
    return status


if __name__ == "__main__":
    sys.exit(main())
