"""Attention over more tokens than the scores of all of them stay in a cache for. `make(folder)` writes the models.

A model is softmax(q k / sqrt(depth) + mask) v; its name says batch x heads, queries x keys and the depth of a head.
"""

import numpy as np

# batch, heads, queries, keys, depth, whether a causal mask is added
ATTENTIONS = [(1, 8, 1024, 1024, 64, False), (1, 8, 1024, 1024, 64, True), (1, 12, 512, 512, 64, False),
              (4, 12, 197, 197, 64, False), (1, 8, 900, 1500, 32, False), (1, 8, 2048, 2048, 64, False)]


def make(folder):
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for batch, heads, queries, keys, depth, is_masked in ATTENTIONS:
        mask = "_causal" if is_masked else ""
        path = folder / f"attention_{batch}x{heads}_{queries}x{keys}_{depth}{mask}.onnx"
        paths.append(path)
        if path.exists():
            continue
        tensors = [numpy_helper.from_array(np.float32(depth**-0.5), "scale")]
        nodes = [helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
                 helper.make_node("MatMul", ["q", "kt"], ["product"]),
                 helper.make_node("Mul", ["product", "scale"], ["scores"])]
        if is_masked:
            tensors.append(numpy_helper.from_array(np.triu(np.full((queries, keys), -1e9, np.float32), 1), "mask"))
            nodes.append(helper.make_node("Add", ["scores", "mask"], ["masked"]))
        nodes += [helper.make_node("Softmax", ["masked" if is_masked else "scores"], ["weights"], axis=-1),
                  helper.make_node("MatMul", ["weights", "v"], ["y"])]
        of = lambda name, rows: helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch, heads, rows, depth])
        graph = helper.make_graph(nodes, path.stem, [of("q", queries), of("k", keys), of("v", keys)],
                                  [of("y", queries)], tensors)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 8
        onnx.save(model, path)
    return paths
