import tempfile

import torch
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.utils.data import DataLoader, TensorDataset


def _steps(model, optimizer, steps=2):
    for _ in range(steps):
        model(torch.ones(2, 8, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def compiled():
    """torch.compile: a training step."""
    model = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 1)).to("cuda")
    _steps(torch.compile(model), torch.optim.AdamW(model.parameters()))


def flexible_attention():
    """flex_attention with a block mask, forward and backward."""
    mask = create_block_mask(lambda _b, _h, q, k: q >= k, None, None, 128, 128, device="cuda")
    query = torch.rand(1, 2, 128, 16, device="cuda", requires_grad=True)
    flex_attention(query, query, query, block_mask=mask).sum().backward()


def _child(rank):
    torch.ones(4, device="cuda").sum().item()
    return rank


def spawned():
    """torch.multiprocessing.spawn: two processes that use the device."""
    torch.multiprocessing.spawn(_child, nprocs=2)


def forked():
    """Fork after the device was used.

    Refused: CUDA cannot be used again in a forked process.
    """
    torch.ones(4, device="cuda")
    context = torch.multiprocessing.get_context("fork")
    with context.Pool(1) as pool:
        pool.apply_async(_child, (0,)).get(60)


def loader_workers():
    """DataLoader with two worker processes and pinned memory."""
    data = TensorDataset(torch.arange(32.0).reshape(8, 4))
    for (batch,) in DataLoader(data, batch_size=2, num_workers=2, pin_memory=True):
        batch.to("cuda", non_blocking=True).sum().item()


def nested_strided():
    """Nested tensors of the strided layout."""
    parts = [torch.ones(2, 3), torch.ones(4, 3)]
    nested = torch.nested.nested_tensor(parts, device="cuda")
    assert nested.device.type == "cuda"
    assert nn.Linear(3, 2).to("cuda")(nested).to_padded_tensor(0.0).shape == (2, 4, 2)


def nested_jagged():
    """Nested tensors of the jagged layout."""
    parts = [torch.ones(2, 8), torch.ones(4, 8)]
    nested = torch.nested.nested_tensor(parts, device="cuda", layout=torch.jagged, requires_grad=True)
    out = nn.Linear(8, 8).to("cuda")(nested)
    heads = out.unflatten(-1, (2, 4)).transpose(1, 2)
    nn.functional.scaled_dot_product_attention(heads, heads, heads).values().sum().backward()


def padded_encoder():
    """TransformerEncoder with a padding mask, in evaluation mode."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 1).to("cuda").eval()
    mask = torch.tensor([[False] * 4, [False] * 2 + [True] * 2], device="cuda")
    with torch.no_grad():
        model(torch.rand(2, 4, 8, device="cuda"), src_key_padding_mask=mask)


def sparse_coordinates():
    """Sparse COO: a product, softmax, gradients."""
    positions = torch.tensor([[0, 1], [1, 0]], device="cuda")
    matrix = torch.sparse_coo_tensor(positions, torch.ones(2, device="cuda"), (2, 2)).coalesce()
    torch.sparse.softmax(matrix, 1).to_dense().sum().item()
    dense = torch.ones(2, 2, device="cuda", requires_grad=True)
    torch.sparse.mm(matrix, dense).sum().backward()


def sparse_rows():
    """Sparse CSR: a product with a dense matrix."""
    matrix = torch.eye(4, device="cuda").to_sparse_csr()
    (matrix @ torch.ones(4, 2, device="cuda")).sum().item()


def sparse_gradients():
    """Embedding with sparse gradients, and SparseAdam."""
    layer = nn.Embedding(8, 4, sparse=True).to("cuda")
    optimizer = torch.optim.SparseAdam(layer.parameters())
    layer(torch.tensor([1, 1, 3], device="cuda")).sum().backward()
    optimizer.step()


def sparse_bags():
    """EmbeddingBag with sparse gradients, Adagrad and SparseAdam."""
    layer = nn.EmbeddingBag(8, 4, mode="sum", sparse=True).to("cuda")
    words, starts = torch.tensor([1, 2, 1, 5], device="cuda"), torch.tensor([0, 2], device="cuda")
    layer(words, starts).sum().backward()
    torch.optim.Adagrad(layer.parameters()).step()
    torch.optim.SparseAdam(layer.parameters()).step()


def graph_network():
    """A graph network by torch.sparse.mm, of coordinates and of rows."""
    edges = torch.tensor([[0, 1, 2, 2], [1, 2, 0, 1]], device="cuda")
    matrix = torch.sparse_coo_tensor(edges, torch.ones(4, device="cuda"), (3, 3)).coalesce()
    degrees = torch.sparse.sum(matrix, 1).to_dense().clamp(min=1)
    layer, x = nn.Linear(4, 4).to("cuda"), torch.rand(3, 4, device="cuda")
    x = torch.relu(torch.sparse.mm(matrix * 0.5, layer(x)) / degrees[:, None])
    torch.sparse.mm(matrix + matrix.t(), x).sum().backward()
    (matrix.to_sparse_csr() @ x.detach()[:, 0]).sum().item()


def graph_captured():
    """A CUDA graph.

    Refused: there is no driver that captures; the code itself can be measured.
    """
    graph = torch.cuda.CUDAGraph()
    x = torch.ones(4, device="cuda")
    with torch.cuda.graph(graph):
        x += 1
    graph.replay()


def _in_group(backend, work):
    with tempfile.TemporaryDirectory() as folder:
        store = torch.distributed.FileStore(f"{folder}/store", 1)
        torch.distributed.init_process_group(backend, store=store, rank=0, world_size=1)
        try:
            work()
        finally:
            torch.distributed.destroy_process_group()


def distributed_gloo():
    """DistributedDataParallel by gloo, with the model on the device."""

    def train():
        model = nn.parallel.DistributedDataParallel(nn.Linear(8, 1).to("cuda"), device_ids=[0])
        _steps(model, torch.optim.SGD(model.parameters(), 0.1))

    _in_group("gloo", train)


def collectives_gloo():
    """Collectives by gloo, of tensors on the device."""
    _in_group("gloo", lambda: torch.distributed.all_reduce(torch.ones(4, device="cuda")))


def distributed_nccl():
    """Collectives by NCCL.

    Refused: NCCL needs GPUs.
    """
    _in_group("nccl", lambda: torch.distributed.all_reduce(torch.ones(4, device="cuda")))


@torch.library.custom_op("compatibility::doubled", mutates_args=())
def _doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


_doubled.register_autograd(lambda _, gradient: gradient * 2)


def custom_operator():
    """An operator of torch.library.custom_op, with its gradient."""
    x = torch.ones(4, device="cuda", requires_grad=True)
    _doubled(x).sum().backward()
    assert x.grad.sum().item() == 8


def triton_kernel():
    """A Triton kernel.

    Refused: Triton compiles for a GPU; here it is not installed.
    """
    import triton
    import triton.language as tl

    @triton.jit
    def add(x, n: tl.constexpr):
        at = tl.arange(0, n)
        tl.store(x + at, tl.load(x + at) + 1)

    add[(1,)](torch.ones(4, device="cuda"), 4)


def half_types():
    """float16, bfloat16 and float8: products, casts, autocast with a gradient scaler."""
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(72, 2)).to("cuda")
    optimizer, scaler = torch.optim.SGD(model.parameters(), 0.1), torch.amp.GradScaler("cuda")
    with torch.autocast("cuda", torch.float16):
        loss = model(torch.rand(2, 1, 8, 8, device="cuda")).sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    half = torch.rand(8, 8, device="cuda", dtype=torch.bfloat16)
    (half @ half).to(torch.float8_e4m3fn).float().mean().item()


def gradient_scaler():
    """A gradient scaler with unscale_ and clipping."""
    model = nn.Linear(8, 1).to("cuda")
    optimizer, scaler = torch.optim.AdamW(model.parameters()), torch.amp.GradScaler("cuda")
    for _ in range(2):
        with torch.autocast("cuda", torch.float16):
            loss = model(torch.ones(2, 8, device="cuda")).square().sum()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def optimizers_foreach():
    """Optimisers with foreach=True, clipping by norm."""
    model = nn.Sequential(*(nn.Linear(8, 8) for _ in range(3))).to("cuda")
    for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.RMSprop, torch.optim.Adagrad):
        _steps(model, kind(model.parameters(), 0.1, foreach=True), 1)
    model(torch.ones(2, 8, device="cuda")).sum().backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)


def optimizers_fused():
    """Optimisers with fused=True and a gradient scaler."""
    model = nn.Sequential(*(nn.Linear(8, 8) for _ in range(3))).to("cuda")
    for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
        _steps(model, kind(model.parameters(), 0.1, fused=True), 1)


def optimizers_capturable():
    """AdamW with capturable=True, a learning rate on the device, L-BFGS."""
    model = nn.Linear(8, 1).to("cuda")
    rate = torch.tensor(0.1, device="cuda")
    _steps(model, torch.optim.AdamW(model.parameters(), rate, capturable=True))
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)

    def closure():
        optimizer.zero_grad()
        loss = model(torch.ones(2, 8, device="cuda")).square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)


def streams():
    """Streams and events: a copy beside the computation."""
    side, done = torch.cuda.Stream(), torch.cuda.Event()
    host = torch.ones(1024).pin_memory()
    with torch.cuda.stream(side):
        device = host.to("cuda", non_blocking=True)
        done.record()
    done.wait()
    device.record_stream(torch.cuda.current_stream())
    device.sum().item()


def recurrent():
    """LSTM with packed sequences."""
    model = nn.LSTM(4, 8, batch_first=True).to("cuda")
    packed = nn.utils.rnn.pack_padded_sequence(torch.rand(2, 5, 4, device="cuda"), [5, 3], batch_first=True)
    nn.utils.rnn.pad_packed_sequence(model(packed)[0])[0].sum().backward()


def functional():
    """vmap, grad and functional_call."""
    model = nn.Linear(8, 1).to("cuda")
    weights = dict(model.named_parameters())

    def loss(weights, x):
        return torch.func.functional_call(model, weights, (x,)).square().sum()

    torch.func.vmap(torch.func.grad(loss), (None, 0))(weights, torch.rand(4, 8, device="cuda"))


def checkpointed():
    """Activation checkpointing."""
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 1)).to("cuda")
    x = torch.rand(2, 8, device="cuda", requires_grad=True)
    torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False).sum().backward()


def scripted():
    """TorchScript: a traced and a scripted module."""
    model = nn.Linear(8, 1).to("cuda")
    x = torch.ones(2, 8, device="cuda")
    torch.jit.trace(model, x)(x)
    torch.jit.script(model)(x)


def saved_and_loaded():
    """torch.save and torch.load with map_location."""
    model = nn.Linear(8, 1).to("cuda")
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/model.pt"
        torch.save(model.state_dict(), file)
        model.load_state_dict(torch.load(file, map_location="cuda"))


def fully_sharded():
    """fully_shard with mixed precision on one rank by gloo, with clipping."""
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    def train():
        mesh = torch.distributed.init_device_mesh("cuda", (1,))
        model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)).cuda()
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        fully_shard(model[0], mesh=mesh, mp_policy=policy)
        fully_shard(model, mesh=mesh, mp_policy=policy)
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(2):
            model(torch.ones(2, 8, device="cuda")).sum().backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()

    _in_group("gloo", train)


def physics_informed():
    """torch.func: a differential equation's residual by vmap of second derivatives, and L-BFGS."""
    network = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1)).cuda()
    x, t = torch.rand(2, 16, device="cuda")

    def value(weights, x, t):
        return torch.func.functional_call(network, weights, (torch.stack((x, t)),)).squeeze(-1)

    def residual(weights, x, t):
        along, across = torch.func.grad(value, 2), torch.func.grad(torch.func.grad(value, 1), 1)
        return along(weights, x, t) - 0.01 / torch.pi * across(weights, x, t)

    optimizer = torch.optim.LBFGS(network.parameters(), max_iter=2)

    def loss():
        optimizer.zero_grad()
        found = torch.vmap(residual, (None, 0, 0))(dict(network.named_parameters()), x, t).pow(2).mean()
        found.backward()
        return found

    optimizer.step(loss).item()


def _largest(x: torch.Tensor) -> torch.Tensor:
    return torch.max(nn.functional.dropout(x, 0.5)) + torch.min(x, 0)[0].sum()


def scripted_extremes():
    """TorchScript of functions that have branches for CUDA: dropout, max and min."""
    torch.jit.script(_largest)(torch.rand(4, 4, device="cuda"))


def script_loaded():
    """TorchScript: a traced module of the host, saved, and loaded onto the device."""
    with tempfile.NamedTemporaryFile() as file:
        torch.jit.save(torch.jit.trace(nn.Linear(4, 2), torch.ones(1, 4)), file.name)
        torch.jit.load(file.name, map_location="cuda")(torch.ones(1, 4, device="cuda"))


def exported():
    """torch.export with a dynamic batch, decompositions, and a run of the program."""
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).cuda().eval()
    x, sizes = torch.ones(2, 4, device="cuda"), ({0: torch.export.Dim("batch", min=2)},)
    program = torch.export.export(model, (x,), dynamic_shapes=sizes)
    program.run_decompositions().module()(torch.ones(5, 4, device="cuda"))


def profiled():
    """torch.profiler of host and device, and marks for NVIDIA's profilers."""
    both = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    x = torch.ones(4, 4, device="cuda")
    with torch.profiler.profile(activities=both, record_shapes=True) as profile:
        (x @ x).sum()
    profile.key_averages().table(sort_by="cuda_time_total", row_limit=5)
    with torch.autograd.profiler.emit_nvtx():
        x.sum()


def data_parallel():
    """DataParallel on one device: a training step."""
    model = nn.DataParallel(nn.Linear(8, 1), device_ids=[0]).cuda()
    model(torch.ones(4, 8)).sum().backward()
    torch.optim.SGD(model.parameters(), 0.1).step()


def data_parallel_on_several():
    """DataParallel on several devices.

    Refused: NCCL, which needs GPUs, copies the module to each.
    """
    nn.DataParallel(nn.Linear(8, 1).cuda(), device_ids=[0, 0])(torch.ones(4, 8).cuda())


def products_in_single_precision():
    """Products of bfloat16 with out_dtype, also added to a result that is there."""
    x = torch.ones(8, 8, dtype=torch.bfloat16, device="cuda")
    total = torch.mm(x, x, out_dtype=torch.float32)
    torch.addmm(total, x, x, out_dtype=torch.float32, out=total)
    torch.bmm(x[None], x[None], out_dtype=torch.float32)


def nested_padded():
    """Nested tensors of the jagged layout: padded, with gradients."""
    parts = [torch.rand(n, 4, device="cuda") for n in (2, 3)]
    x = torch.nested.nested_tensor(parts, layout=torch.jagged, requires_grad=True)
    torch.nested.to_padded_tensor(x, 0.0).sum().backward()


def four_bits():
    """A product with weights of 4 bits.

    Refused: PyTorch has no kernel for the CPU that computes its values in this layout.
    """
    weights = torch.zeros(1, 1, 32, 4, dtype=torch.int32, device="cuda")
    scales = torch.ones(4, 8, 2, dtype=torch.bfloat16, device="cuda")
    torch._weight_int4pack_mm(torch.ones(8, 64, dtype=torch.bfloat16, device="cuda"), weights, 32, scales)


_library = torch.library.Library("compatibility_kernels", "DEF")
_library.define("normalised(Tensor x) -> Tensor")
_library.impl("normalised", lambda x: x / x.norm().item(), "CUDA")


def library_kernel():
    """An operator of torch.library whose kernel for CUDA is Python, with a read."""
    torch.ops.compatibility_kernels.normalised(torch.ones(4, device="cuda"))
