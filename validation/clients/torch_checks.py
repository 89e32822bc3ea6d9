"""PyTorch: what needs no closed library. Products of matrices call cuBLAS and convolutions cuDNN; no check does."""

import numpy
import torch
import torch.nn.functional as functional
from checks import Checks, close, integers, normalised, random, same, softmax
from tensors import host, put

check = Checks("torch")
GPU = "cuda"


@check
def elementwise():
    x, y = random(3000), random(3000, seed=2)
    found = torch.tanh(put(x)) * torch.sqrt(put(y).abs()) + torch.where(put(x) > 0, put(y), 2.0)
    close(host(found), numpy.tanh(x) * numpy.sqrt(abs(y)) + numpy.where(x > 0, y, 2))


@check
def kinds_and_broadcasting():
    x, y = integers(100, 40, 1), integers(100, 1, 30, kind=numpy.int64)
    same(host(put(x) * put(y) % 7), x * y % 7)
    z = random(500)
    close(host((put(z).half() * 2).float()), (z.astype(numpy.float16) * 2).astype(numpy.float32))
    close(host(put(z).bfloat16().float()), z, 1e-2)


@check
def sums():
    x = random(30, 40, 50)
    for axis in (None, 0, 1, (0, 2)):
        close(host(put(x).sum(dim=axis)), x.sum(axis=axis, dtype=numpy.float64), 1e-4, 1e-4)
    close(host(put(x).mean()), x.mean(), 1e-4, 1e-4)


@check
def other_reductions():
    x = random(40, 100, kind=numpy.float64)
    device = put(x)
    same(host(device.amax(dim=1)), x.max(axis=1))
    same(host(device.argmin(dim=0)), x.argmin(axis=0))
    close(host(device.var(dim=1, correction=0)), x.var(axis=1), 1e-12)
    close(host(torch.logsumexp(device, 1)), numpy.log(numpy.exp(x).sum(axis=1)), 1e-12)
    same([bool((device > -10).all()), bool((device > 10).any())], [True, False])


@check
def indexing():
    x, places = random(200, 10), integers(200, 500, kind=numpy.int64)
    device = put(x)
    same(host(device[put(places)]), x[places])
    rows = places.reshape(50, 10)
    same(host(torch.gather(device, 0, put(rows))), numpy.take_along_axis(x, rows, 0))
    device[put(places[:5])] = 7
    x[places[:5]] = 7
    same(host(device), x)


@check
def boolean_masks():
    x = random(5000)
    device = put(x)
    same(host(device[device > 0.3]), x[x > 0.3])
    device[device < 0] = 0
    same(host(device), numpy.where(x < 0, 0, x))


@check
def nonzero():
    x = integers(3, 40, 50)
    same(host(torch.nonzero(put(x))), numpy.argwhere(x))
    assert int(torch.count_nonzero(put(x))) == numpy.count_nonzero(x)


@check
def unique():
    x = integers(60, 3000, kind=numpy.int64)
    found = torch.unique(put(x), return_inverse=True, return_counts=True)
    for part, expected in zip(found, numpy.unique(x, return_inverse=True, return_counts=True)):
        same(host(part), expected)


@check
def sort():
    x = random(6000)
    values, places = torch.sort(put(x))
    same(host(values), numpy.sort(x))
    same(host(places), numpy.argsort(x, kind="stable"))
    y = integers(1000, 30, 70)
    same(host(torch.sort(put(y), dim=1, descending=True)[0]), -numpy.sort(-y, axis=1))


@check
def top_k():
    x = random(20, 500)
    values, places = torch.topk(put(x), 8, dim=1)
    expected = -numpy.sort(-x, axis=1)[:, :8]
    same(host(values), expected)
    same(numpy.take_along_axis(x, host(places), 1), expected)
    same(host(torch.kthvalue(put(x), 10, dim=1).values), numpy.sort(x, axis=1)[:, 9])


@check
def cumulative_sums():
    x = integers(100, 5000, kind=numpy.int64)
    same(host(torch.cumsum(put(x), 0)), numpy.cumsum(x))
    y = random(40, 60, kind=numpy.float64)
    close(host(torch.cumsum(put(y), 1)), numpy.cumsum(y, axis=1), 1e-12, 1e-12)
    same(host(torch.cummax(put(y), 0).values), numpy.maximum.accumulate(y, 0))


@check
def scatter_and_histograms():
    places, x = integers(64, 4000, kind=numpy.int64), random(4000, kind=numpy.float64)
    same(host(torch.bincount(put(places), minlength=64)), numpy.bincount(places, minlength=64))
    found = torch.zeros(64, dtype=torch.float64, device=GPU).scatter_add_(0, put(places), put(x))
    close(host(found), numpy.bincount(places, x, 64), 1e-11, 1e-11)
    bins = torch.histc(put(x), 20, -3, 3)
    same(host(bins), numpy.histogram(x, 20, (-3, 3))[0])


@check
def joins_and_strides():
    x = integers(1000, 12, 8, 5)
    device = put(x)
    same(host(torch.cat([device.permute(2, 0, 1), device.permute(2, 0, 1).flip(1)], 2)),
         numpy.concatenate([x.transpose(2, 0, 1), x.transpose(2, 0, 1)[:, ::-1]], 2))
    same(host(torch.roll(device.transpose(0, 1).contiguous(), 3, 0)), numpy.roll(x.transpose(1, 0, 2), 3, 0))
    same(host(torch.tril(device[:, :, 0])), numpy.tril(x[:, :, 0]))


@check
def layer_norm():
    x, weight, bias = random(30, 200), random(200, seed=2), random(200, seed=3)
    found = functional.layer_norm(put(x), (200,), put(weight), put(bias))
    close(host(found), normalised(x) * weight + bias, 1e-4, 1e-4)


@check
def group_and_root_mean_square_norms():
    x = random(4, 8, 10, 10)
    expected = normalised(x.reshape(4, 2, -1)).reshape(x.shape)
    close(host(functional.group_norm(put(x), 2)), expected, 1e-4, 1e-4)
    y = random(20, 64)
    expected = y / numpy.sqrt((y**2).mean(axis=1, keepdims=True) + 1e-6)
    close(host(functional.rms_norm(put(y), (64,), eps=1e-6)), expected, 1e-4)


@check
def softmax_and_cross_entropy():
    x, target = random(60, 100), integers(100, 60, kind=numpy.int64)
    close(host(torch.softmax(put(x), 1)), softmax(x), 1e-4, 1e-6)
    expected = -numpy.log(softmax(x)[numpy.arange(60), target]).mean()
    close(host(functional.cross_entropy(put(x), put(target))), expected, 1e-4)


@check
def fused_attention():
    q, k, v = (random(1, 2, 64, 32, seed=seed) for seed in (1, 2, 3))
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
        found = functional.scaled_dot_product_attention(put(q).half(), put(k).half(), put(v).half())
    expected = softmax(q @ k.transpose(0, 1, 3, 2) / numpy.sqrt(32)) @ v
    close(host(found.float()), expected, 2e-2, 2e-2)


@check
def memory_efficient_attention():
    q, k, v = (random(1, 2, 48, 32, seed=seed) for seed in (1, 2, 3))
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.EFFICIENT_ATTENTION):
        found = functional.scaled_dot_product_attention(put(q), put(k), put(v), is_causal=True)
    scores = q @ k.transpose(0, 1, 3, 2) / numpy.sqrt(32)
    scores[:, :, numpy.triu(numpy.ones((48, 48), bool), 1)] = -numpy.inf
    close(host(found), softmax(scores) @ v, 1e-2, 1e-2)


@check
def backward():
    x, weight = random(50, 20, kind=numpy.float64), random(20, seed=2, kind=numpy.float64)
    device = put(weight).requires_grad_()
    error = (torch.sigmoid((put(x) * device).sum(1)) - 0.5).pow(2).sum()
    error.backward()
    s = 1 / (1 + numpy.exp(-(x * weight).sum(axis=1)))
    close(host(device.grad), (2 * (s - 0.5) * s * (1 - s)) @ x, 1e-10, 1e-10)


@check
def optimiser():
    target = random(100)
    weight = torch.zeros(100, device=GPU, requires_grad=True)
    adam = torch.optim.Adam([weight], lr=0.1)
    m = v = w = numpy.zeros(100)
    for step in range(1, 6):
        adam.zero_grad()
        (weight - put(target)).pow(2).sum().backward()
        adam.step()
        gradient = 2 * (w - target)
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        w = w - 0.1 * (m / (1 - 0.9**step)) / (numpy.sqrt(v / (1 - 0.999**step)) + 1e-8)
    close(host(weight), w, 1e-4, 1e-4)


@check
def compiled_function():
    @torch.compile
    def activation(x, y):
        return torch.nn.functional.gelu(x) * y + (x * y).sum(dim=1, keepdim=True)

    x, y = put(random(20, 300)), put(random(20, 300, seed=2))
    close(host(activation(x, y)), host(functional.gelu(x) * y + (x * y).sum(dim=1, keepdim=True)), 1e-4, 1e-4)


@check
def cuda_graph():
    x = torch.zeros(1000, device=GPU)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = (x * 2 + 1).relu()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = (x * 2 + 1).relu()
    for seed in (1, 2):
        values = random(1000, seed=seed)
        x.copy_(put(values))
        graph.replay()
        close(host(y), numpy.maximum(values * 2 + 1, 0))


@check
def streams_and_events():
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    x = torch.from_numpy(random(4000)).pin_memory()
    with torch.cuda.stream(first):
        begin.record()
        device = x.to(GPU, non_blocking=True) * 3
        end.record()
    second.wait_event(end)
    with torch.cuda.stream(second):
        found = (device + 1).to("cpu", non_blocking=True)
    second.synchronize()
    close(found.numpy(), x.numpy() * 3 + 1)
    assert end.query() and begin.elapsed_time(end) >= 0


check.run()
