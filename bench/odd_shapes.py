"""Single operators over shapes that nobody tunes for: odd channels, 7x7, primes, batch 3. `make(folder)` writes the models.

Each row of a table below is one model of one node; its name says the operator and its shape.
"""

import numpy as np

# in, out channels, kernel, stride, dilation, groups (0: depthwise), batch, rows, columns
CONVOLUTIONS = [
    (61, 83, 1, 1, 1, 1, 1, 13, 11), (37, 53, 1, 1, 1, 1, 3, 7, 7), (160, 960, 1, 1, 1, 1, 1, 7, 7),
    (127, 131, 1, 1, 1, 1, 1, 31, 29), (17, 19, 1, 1, 1, 1, 1, 64, 64), (64, 129, 1, 2, 1, 1, 1, 57, 57),
    (96, 24, 1, 1, 1, 1, 3, 14, 14), (512, 1000, 1, 1, 1, 1, 1, 1, 1), (3, 29, 3, 2, 1, 1, 1, 97, 113),
    (19, 45, 3, 1, 1, 1, 1, 23, 9), (32, 64, 3, 1, 1, 1, 3, 7, 7), (61, 67, 3, 1, 1, 1, 1, 28, 28),
    (96, 96, 3, 1, 1, 1, 1, 7, 7), (13, 7, 3, 1, 1, 1, 1, 101, 103), (32, 32, 3, 1, 2, 1, 1, 30, 30),
    (33, 65, 3, 2, 1, 1, 1, 56, 56), (24, 40, 5, 1, 1, 1, 1, 17, 19), (64, 64, 3, 1, 1, 4, 1, 28, 28),
    (66, 66, 3, 1, 1, 3, 1, 15, 15), (3, 31, 7, 2, 1, 1, 1, 127, 127), (256, 1, 1, 1, 1, 1, 1, 28, 28),
    (61, 61, 3, 1, 1, 0, 1, 13, 11), (960, 960, 3, 1, 1, 0, 1, 7, 7), (45, 45, 3, 1, 1, 0, 3, 31, 29),
    (97, 97, 3, 2, 1, 0, 1, 57, 55), (120, 120, 5, 1, 1, 0, 1, 28, 28), (72, 72, 5, 2, 1, 0, 1, 53, 47),
    (96, 96, 3, 2, 1, 0, 1, 112, 112), (3, 3, 3, 1, 1, 0, 1, 211, 199),
]
# batch (0: none), rows, inner, columns, whether the second operand is a constant
PRODUCTS = [
    (0, 127, 131, 137, True), (0, 1, 1000, 997, True), (0, 7, 512, 2048, True), (0, 49, 768, 3072, True),
    (0, 1024, 17, 1024, True), (0, 3, 513, 511, True), (0, 1, 64, 10, True), (0, 197, 768, 768, True),
    (3, 49, 64, 49, False), (12, 197, 64, 197, False), (12, 197, 197, 64, False), (0, 61, 67, 71, False),
    (0, 1, 1024, 1024, False), (0, 1000, 333, 1, True), (0, 513, 1025, 3, False),
]
# shape, axis
SOFTMAXES = [((1, 1000), -1), ((2364, 197), -1), ((3, 7, 49), -1), ((1, 21, 64, 64), 1), ((31, 4097), -1), ((777, 5), -1),
             ((3, 13, 57), 1)]
LAYER_NORMS = [(197, 768), (3, 49, 96), (1, 1023), (1000, 33), (61, 4099)]
# operator, kernel, stride, padding, shape
POOLS = [("MaxPool", 3, 2, 1, (1, 64, 112, 112)), ("MaxPool", 3, 2, 0, (3, 37, 55, 53)),
         ("AveragePool", 2, 2, 0, (1, 61, 31, 29)), ("AveragePool", 3, 1, 1, (1, 45, 23, 29)),
         ("MaxPool", 5, 1, 2, (1, 128, 20, 20)), ("GlobalAveragePool", 0, 0, 0, (1, 1280, 7, 7)),
         ("GlobalAveragePool", 0, 0, 0, (3, 61, 13, 17)), ("GlobalAveragePool", 0, 0, 0, (1, 96, 113, 97))]
# operator, attributes, shapes of the inputs
OTHERS = [
    ("Add", {}, [(1, 61, 113, 97)] * 2), ("Add", {}, [(1, 61, 57, 57), (1, 61, 1, 1)]),
    ("Mul", {}, [(3, 33, 49, 7), (33, 1, 7)]), ("Relu", {}, [(1013, 1009)]), ("Sigmoid", {}, [(3, 333, 77)]),
    ("Erf", {}, [(49, 3073)]), ("Tanh", {}, [(61, 1021)]), ("Exp", {}, [(61, 1021)]), ("Sqrt", {}, [(61, 1021)]),
    ("Div", {}, [(61, 1021), (61, 1)]), ("HardSigmoid", {}, [(1, 45, 57, 53)]),
    ("Transpose", {"perm": [0, 2, 3, 1]}, [(1, 61, 57, 53)]), ("Transpose", {"perm": [0, 2, 1, 3]}, [(3, 197, 12, 64)]),
    ("Transpose", {"perm": [1, 0]}, [(1021, 769)]), ("Concat", {"axis": 1}, [(1, 13, 57, 57), (1, 31, 57, 57)]),
    ("ReduceMean", {"axes": [2, 3]}, [(1, 61, 57, 57)]), ("ReduceMean", {"axes": [-1]}, [(1013, 333)]),
    ("ReduceMax", {"axes": [0]}, [(1013, 333)]), ("ReduceMean", {"axes": [1]}, [(3, 61, 57, 53)]),
]


def make(folder):
    """Writes the models that are not there yet; returns the paths of all."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(5)
    paths = []

    def write(name, op, attributes, inputs, constants=()):
        path = folder / f"{name}.onnx"
        paths.append(path)
        if path.exists():
            return
        names = [f"x{index}" for index in range(len(inputs))]
        weights = [(f"w{index}", rng.standard_normal(shape).astype(np.float32) / 8) for index, shape in enumerate(constants)]
        node = helper.make_node(op, [*names, *(weight for weight, _ in weights)], ["y"], **attributes)
        graph = helper.make_graph(
            [node], name, [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in zip(names, inputs)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [numpy_helper.from_array(value, weight) for weight, value in weights])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 8
        onnx.save(model, path)

    def text(shape):
        return "x".join(map(str, shape))

    for c_in, c_out, kernel, stride, dilation, groups, *image in CONVOLUTIONS:
        groups = groups or c_in
        padding = [(kernel - 1) * dilation // 2] * 4
        kind = f"dw{kernel}" if groups == c_in else f"conv{kernel}"
        write(f"odd_{kind}s{stride}d{dilation}g{groups}_{c_out}_{text([image[0], c_in, *image[1:]])}", "Conv",
              {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "dilations": [dilation] * 2, "pads": padding,
               "group": groups}, [(image[0], c_in, *image[1:])], [(c_out, c_in // groups, kernel, kernel), (c_out,)])
    for batch, rows, inner, columns, is_constant in PRODUCTS:
        a, b = (rows, inner), (inner, columns)
        if batch:
            a, b = (batch, *a), (batch, *b)
        name = f"odd_matmul_{batch}_{rows}x{inner}x{columns}{'' if is_constant else '_dyn'}"
        write(name, "MatMul", {}, [a] if is_constant else [a, b], [b] if is_constant else [])
    for shape, axis in SOFTMAXES:
        write(f"odd_softmax{axis}_{text(shape)}", "Softmax", {"axis": axis}, [shape])
    for shape in LAYER_NORMS:
        write(f"odd_layernorm_{text(shape)}", "LayerNormalization", {"axis": -1}, [shape], [shape[-1:], shape[-1:]])
    for op, kernel, stride, padding, shape in POOLS:
        attributes = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [padding] * 4} if kernel else {}
        write(f"odd_{op.lower()}{kernel}s{stride}_{text(shape)}", op, attributes, [shape])
    for op, attributes, shapes in OTHERS:
        how = "".join(f"_{text(value) if isinstance(value, list) else value}" for value in attributes.values())
        write(f"odd_{op.lower()}{how}_{'_'.join(map(text, shapes))}", op, attributes, shapes)
    return paths
