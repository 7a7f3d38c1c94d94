#!/usr/bin/env python3
"""One turn of one peer, in a process of its own: `peers.py PEER JOB.json` reads the job, measures, writes a report.

A job has: model, inputs (name -> .npy), outputs (names), threads, warmup and duration in seconds, limit of runs, folder (of the
turn), cache (a folder that outlives the turn). The report: samples in seconds, first (from opening the file to the first
result), outputs (.npy files in the model's order), peak and start of the resident memory in bytes.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np


def load_onnxruntime(job, feeds):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = job["threads"]
    options.inter_op_num_threads = 1
    options.log_severity_level = 3

    def load():
        session = onnxruntime.InferenceSession(job["model"], options, providers=["CPUExecutionProvider"])
        return lambda: session.run(job["outputs"], feeds)

    return load


def load_openvino(job, feeds):
    import openvino
    import openvino.properties.hint as hints

    core = openvino.Core()
    core.set_property({"CACHE_DIR": job["cache"]})
    settings = {"INFERENCE_NUM_THREADS": job["threads"], "NUM_STREAMS": 1,
                hints.performance_mode: hints.PerformanceMode.LATENCY,
                hints.inference_precision: openvino.Type.f32}

    def load():
        compiled = core.compile_model(job["model"], "CPU", settings)
        request = compiled.create_infer_request()
        for name, value in feeds.items():
            request.set_tensor(name, openvino.Tensor(value, shared_memory=True))
        ports = [compiled.output(name) for name in job["outputs"]]

        def run():
            request.infer()
            return [request.get_tensor(port).data for port in ports]

        return run

    return load


def load_ncnn(job, feeds):
    import ncnn

    converted = Path(job["cache"]) / "model.ncnn.param"

    def convert():
        model = Path(job["cache"]) / "model.onnx"
        shutil.copyfile(job["model"], model)
        shapes = ",".join("[" + ",".join(map(str, value.shape)) + "]" for value in feeds.values())
        tool = Path(sys.executable).parent.parent
        tool = next(tool.glob("lib/python*/site-packages/pnnx/pnnx"))
        done = subprocess.run([tool, model, f"inputshape={shapes}", "fp16=0"], capture_output=True, text=True,
                              timeout=job["limit"], check=False, cwd=job["cache"])
        if done.returncode != 0 or not converted.exists():
            raise RuntimeError(f"the converter ends with {done.returncode}: {done.stderr[-300:]}")
        text = converted.read_text()
        if "pnnx." in text or "aten::" in text:
            raise RuntimeError("the converter leaves operators that ncnn does not have")

    def load():
        if not converted.exists():
            convert()
        net = ncnn.Net()
        net.opt.num_threads = job["threads"]
        net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
        net.opt.use_bf16_storage = False
        net.opt.openmp_blocktime = 0
        if net.load_param(str(converted)) != 0 or net.load_model(str(converted.with_suffix(".bin"))) != 0:
            raise RuntimeError("ncnn does not load what its converter wrote")
        # clone(): a Mat made of an array looks at the array's memory.
        mats = []
        for value in feeds.values():
            value = value.astype(np.float32)
            if value.ndim > 1 and value.shape[0] == 1:
                value = value[0]  # it knows no batch
            mats.append(ncnn.Mat(np.ascontiguousarray(value)).clone())

        def run():
            extractor = net.create_extractor()
            for index, mat in enumerate(mats):
                extractor.input(f"in{index}", mat)
            got = []
            for index in range(len(job["outputs"])):
                status, mat = extractor.extract(f"out{index}")
                if status != 0:
                    raise RuntimeError(f"ncnn ends with {status} at output {index}")
                got.append(np.array(mat))
            return got

        return run

    return load


def load_tinygrad(job, feeds):
    compiler = os.environ.get("CC", "clang")
    if shutil.which(compiler) is None:
        raise RuntimeError(f"its CPU backend compiles with clang, and there is no '{compiler}': install it or name one in CC")
    os.environ.setdefault("CACHEDB", str(Path(job["cache"]) / "tinygrad.db"))
    os.environ["DEV"] = "CPU"
    os.environ["NUM_CPU_THREADS"] = str(job["threads"])
    from tinygrad import Tensor, TinyJit
    from tinygrad.nn.onnx import OnnxRunner

    def load():
        runner = OnnxRunner(job["model"])
        tensors = {name: Tensor(value).realize() for name, value in feeds.items()}

        @TinyJit
        def step(**inputs):
            results = runner(inputs)
            return [results[name].realize() for name in job["outputs"]]

        return lambda: [value.numpy() for value in step(**tensors)]

    return load


PEERS = {"onnxruntime": load_onnxruntime, "openvino": load_openvino, "ncnn": load_ncnn,
         "tinygrad": load_tinygrad}


def main():
    peer, job_path = sys.argv[1:]
    job = json.loads(Path(job_path).read_text())
    feeds = {name: np.load(file) for name, file in job["inputs"].items()}
    load = PEERS[peer](job, feeds)
    at_start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    begin = time.perf_counter()
    run = load()
    outputs = run()
    first = time.perf_counter() - begin
    outputs = [np.array(value) for value in outputs]
    warm_until = time.perf_counter() + job["warmup"]
    runs = 0
    # Three runs at least: a peer may record its calls in the second one.
    while time.perf_counter() < warm_until or runs < 3:
        run()
        runs += 1
    samples = []
    stop_at = time.perf_counter() + job["duration"]
    while time.perf_counter() < stop_at or len(samples) < 5:
        begin = time.perf_counter()
        run()
        samples.append(time.perf_counter() - begin)
    files = []
    for index, value in enumerate(outputs):
        file = Path(job["folder"]) / f"{peer}.{index}.npy"
        np.save(file, value)
        files.append(str(file))
    report = {"samples": samples, "first": first, "outputs": files, "start": at_start,
              "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}
    (Path(job["folder"]) / f"{peer}.json").write_text(json.dumps(report))


if __name__ == "__main__":
    main()
