#!/usr/bin/env python3
"""Turns the one mesh of a Draco-compressed binary glTF file into a Wavefront OBJ file.

Written for the model in crates/workload/meshes (its README says which); positions and triangles
only. Input may be the .glb itself or a JavaScript module that exports it as a base64 data URL.

    pip install DracoPy numpy
    python3 draco_glb_to_obj.py --in F.glb.js --comment TEXT > F.obj
"""

import argparse
import base64
import json
import re
import struct
import sys

import DracoPy
import numpy


def glb(path):
    """The bytes of the binary glTF file."""
    data = open(path, "rb").read()
    if data[:4] == b"glTF":
        return data
    url = re.search(rb"base64,([A-Za-z0-9+/=]+)", data)
    if not url:
        sys.exit(f"{path}: neither binary glTF nor a module with a base64 data URL")
    return base64.b64decode(url.group(1))


def mesh(data, path):
    """Positions and triangles of the first primitive."""
    length = struct.unpack("<I", data[12:16])[0]
    head = json.loads(data[20 : 20 + length])
    body = data[20 + length + 8 :]
    primitives = [p for m in head["meshes"] for p in m["primitives"]]
    if len(primitives) != 1:
        sys.exit(f"{path}: {len(primitives)} primitives; this program is for one")
    draco = primitives[0]["extensions"]["KHR_draco_mesh_compression"]
    view = head["bufferViews"][draco["bufferView"]]
    begin = view.get("byteOffset", 0)
    decoded = DracoPy.decode(body[begin : begin + view["byteLength"]])
    return numpy.array(decoded.points), numpy.array(decoded.faces)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--in", dest="path", required=True)
    parser.add_argument("--comment", default="")
    options = parser.parse_args()
    points, faces = mesh(glb(options.path), options.path)
    if options.comment:
        print(f"# {options.comment}")
    for x, y, z in points:
        # Five digits: a tenth of the step the file's positions are quantized to.
        print(f"v {x:.5f} {y:.5f} {z:.5f}")
    for a, b, c in faces + 1:
        print(f"f {a} {b} {c}")


main()
