#!/usr/bin/env python3
"""Inference with CUDA graphs: a transformer's encoder, captured once and replayed, timed on the host.

    inference.py REPLAYS [WARM_UP_SECONDS]

Prints the seconds of the timed replays and the microseconds of one, in the columns of `steady`.
"""

import sys
import time

import torch


def main():
    replays, warm_up = int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 0.5
    torch.manual_seed(1)
    layer = torch.nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True, device="cuda", dtype=torch.float16)
    model = torch.nn.TransformerEncoder(layer, 12, enable_nested_tensor=False).eval()
    given = torch.randn(1, 128, 768, device="cuda", dtype=torch.float16)
    graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.no_grad():
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                expected = model(given)
        torch.cuda.current_stream().wait_stream(side)
        with torch.cuda.graph(graph):
            result = model(given)
    begun = time.monotonic()
    while time.monotonic() - begun < warm_up:
        graph.replay()
        torch.cuda.synchronize()
    start = time.monotonic()
    for _ in range(replays):
        graph.replay()
    torch.cuda.synchronize()
    elapsed = time.monotonic() - start
    if not torch.allclose(result, expected, atol=1e-2):
        sys.exit("the replayed result is not the computed one")
    print(f"inference 12 {replays} {elapsed:.6f} {elapsed / replays * 1e6:.3f}")


if __name__ == "__main__":
    main()
