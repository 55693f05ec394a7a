#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cuts tensor_cores.json and tensor_cores.bin of FOLDER to their first ROWS rows, into this folder.

    ./sample.py FOLDER ROWS
"""
import json
import lzma
import pathlib
import sys

source, rows = pathlib.Path(sys.argv[1]), int(sys.argv[2])
index = json.loads((source / "tensor_cores.json").read_text())
data = lzma.open(source / "tensor_cores.bin.xz").read()
out = b""
for array in index["arrays"]:
    plane, kept = index["rows"] * array["columns"], rows * array["columns"]
    first, array["offset"] = array["offset"], len(out)
    for byte in range(array["bits"] // 8):
        out += data[first + byte * plane:][:kept]
index["rows"] = rows
lists = {name: ",\n".join(map(json.dumps, index[name])) for name in ("arrays", "sets")}
here = pathlib.Path(__file__).parent
(here / "tensor_cores.bin").write_bytes(out)
(here / "tensor_cores.json").write_text(
    f'{{"rows": {rows},\n"arrays": [\n{lists["arrays"]}\n],\n"sets": [\n{lists["sets"]}\n]}}\n')
