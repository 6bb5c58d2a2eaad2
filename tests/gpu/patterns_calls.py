"""Rows of calls in training and inference: conditions, numbers, indices, losses, distributions, streams."""

# A table: a row may take two lines, and is not wrapped further.
# fmt: off

import copy
import pickle

from tests.gpu.pattern import HELPERS, row

HELPERS.update(copy=copy, pickle=pickle)

READ = "ATen/native/cuda/CUDAScalar.cu: one value, one wait"
NONE = "nothing is read"

# Values that the host reads.
row("f'{rows.mean():.3f} {rows.std():.3f}'", READ, waits=2, d2h=2, launches=2)
row("'%.2f' % value", "__float__", waits=1, d2h=1, launches=0)
row("'{:.4f} {:.4f}'.format(value, value)", READ, waits=2, d2h=2, launches=0)
row("f'{value:>7f}  [{1:>5d}/{2:>5d}]'", READ, waits=1, d2h=1, launches=0)
row("math.exp(value)", "__float__", waits=1, d2h=1, launches=0)
row("math.ceil(value)", "no __ceil__: __float__", waits=1, d2h=1, launches=0)
row("round(value.item(), 3)", READ, waits=1, d2h=1, launches=0)
row("int(value * 10) + 1", READ, waits=1, d2h=1, launches=1)
row("rows.detach().cpu().numpy().mean()", "Copy.cu", waits=1, d2h=1, launches=0)
row("rows.numpy(force=True)", "Copy.cu", waits=1, d2h=1, launches=0)
row("max([each.item() for each in rows[0]])", READ, waits=6, d2h=6, launches=0)
row("sorted(y, key=float)", READ, waits=3, d2h=3, launches=0)
row("any(mask)", "the first is true", waits=1, d2h=1, launches=0)
row("all(mask)", "the second is false", waits=2, d2h=2, launches=0)
row("[i for i, keep in enumerate(mask) if keep]", READ, waits=8, d2h=8, launches=0)
row("list(zip(index.tolist(), y.tolist()))", "tensor_list.cpp", waits=2, d2h=2, launches=0)
row("[x[i] for i in index]", "TensorIndexing.h: each is read", waits=3, d2h=3, launches=0)
row("[x[int(i)] for i in index]", READ, waits=3, d2h=3, launches=0)
row("x[index[0]:index[1]]", "python_variable_indexing.cpp: both ends", waits=2, d2h=2, launches=0)
row("rows[:three, one:]", "both ends that are given", waits=2, d2h=2, launches=0)
row("rows[one, three]", "two selects", waits=2, d2h=2, launches=0)
row("rows[one, three] = 0.0", "two reads; a number to an element is copied", waits=3, d2h=2, h2d=1,
    launches=0)
row("rows[one][three] += 1", "read one, read three; in place; read three, one view", waits=3, d2h=3,
    launches=1)
row("x[:3].split(index.tolist())", READ, waits=1, d2h=1, launches=0)
row("x.topk(three)", "python_arg_parser.cpp", waits=1, d2h=1, launches=2)
row("x[:2].view(-1, three - 1)", "python_arg_parser.cpp", waits=1, d2h=1, launches=1)
row("torch.arange(0, value + 1, 0.25, device='cuda')", "the end is read", waits=1, d2h=1, launches=2)
row("torch.zeros(index.max() + 1, device='cuda')", "max, add, read, zeros", waits=1, d2h=1, launches=3)
row("torch.zeros(int(index.max()) + 1, 3, device='cuda').index_add_(0, index, eye)", READ, waits=1, d2h=1,
    launches=3)
row("torch.eye(int(three), device='cuda')", READ, waits=1, d2h=1, launches=2)
row("x.new_full((2,), value.item())", READ, waits=1, d2h=1, launches=1)
row("torch.linspace(0, value.item(), 4, device='cuda')", READ, waits=1, d2h=1, launches=1)
row("[0] * int(three)", READ, waits=1, d2h=1, launches=0)
row("['a', 'b', 'c', 'd'][rows[:, 0].argmax()]", "__index__", waits=1, d2h=1, launches=1)
row("{0: 'a', 1: 'b'}[one.item()]", READ, waits=1, d2h=1, launches=0)
row("str(three)", "_tensor_str.py: the formatter and the value", waits=2, d2h=2)
row("str(mask)", "_tensor_str.py: each, then tolist", waits=9, d2h=9)
row("str(x[:0])", "no elements", waits=0)
row("hash(value), id(value), len(rows), rows.shape[0] * rows.size(1), rows.numel()", "host", launches=0)

# Conditions.
row("if x.isnan().any(): pass", READ, waits=1, d2h=1, launches=2)
row("torch.isnan(rows).sum().item()", "isnan, a sum of truth values", waits=1, d2h=1, launches=3)
row("if not torch.isfinite(value): pass", "eq, abs, ne, mul", waits=1, d2h=1, launches=4)
row("value.item() if value.isfinite() else 0.0", READ, waits=2, d2h=2, launches=4)
row("(x.sum() >= 0) and (x.mean() < 2)", "and asks the first alone", waits=1, d2h=1, launches=4)
row("if mask.sum() == 0: pass", READ, waits=1, d2h=1, launches=3)
row("if len(mask.nonzero()) == 0: pass", "Nonzero.cu", waits=1, d2h=1)
row("x[mask].numel() == 0", "nonzero", waits=1, d2h=1, d2d=None)
row("torch.equal(rows, rows)", "Equal.cpp: one storage is equal to itself", launches=0)
row("torch.equal(x, y)", "sizes differ", launches=0)
row("x.allclose(x + 1e-9)", "all().item()", waits=1, d2h=1, d2d=None)
row("best = 1e9\nif value < best: best = value", READ, waits=1, d2h=1, launches=1)
row("min(1.0, value)", "Python compares once", waits=1, d2h=1, launches=1)
row("min(value, 5.0, one * 9)", "Python compares twice", waits=2, d2h=2, launches=3)
row("2 in index", "any().item()", waits=1, d2h=1, launches=2)
row("assert index.min() >= 0 and index.max() < 3", "both hold", waits=2, d2h=2, launches=4)

# Host scalars and device tensors.
row("rows.clamp(max=value)", "of a tensor", launches=1)
row("rows.clamp(min=0, max=value)", "python_arg_parser.cpp: numbers both, so it is read", waits=1, d2h=1,
    launches=1)
row("torch.where(x > value, x, value)", "gt, where", launches=2)
row("x.pow(value)", "tensors both", launches=1)
row("value ** 2", "LOOPS", launches=1)
row("1 / value", "reciprocal, mul", launches=2)
row("1 - value", "rsub", launches=1)
row("5 // three", "the number is an argument", launches=1)
row("2 % three", "the number is an argument", launches=1)
row("3.0 * value - y", "mul, sub", launches=2)
row("value + torch.tensor(1.0)", "a host scalar", launches=1)
row("x.masked_fill(mask, torch.tensor(0.0))", "Indexing.cu: item of the host", d2d=1, launches=1)
row("x.index_fill_(0, index, torch.tensor(1.0))", "item of the host", launches=1)
row("x.add_(torch.tensor(1.0), alpha=2)", "a host scalar", launches=1)
row("torch.tensor(value)", "tensor_new.cpp: a copy", d2d=1, launches=0, allocations=1)
row("torch.as_tensor(value)", "itself", launches=0, allocations=0)
row("torch.tensor([value.item()] * 2, device='cuda')", READ + "; Python reads once and repeats the number",
    waits=2, d2h=1, h2d=1, launches=0)
row("torch.tensor(y.tolist(), device='cuda')", READ, waits=2, d2h=1, h2d=1, launches=0)
row("torch.stack([value, one])", "Shape.cu: types differ", d2d=1, launches=1)
row("torch.cat([value[None], y])", "Shape.cu", launches=1)
row("torch.hstack([x, y]), torch.vstack([y, y])", "cat", launches=2)
row("x.fill_(1.5).mul_(2).sub_(value)", "LOOPS", launches=3)
row("torch.full_like(rows, 3.0)", "fill", launches=1)
row("rows.cuda(non_blocking=True), rows.to('cuda'), rows.to(torch.float32)", "itself", launches=0)
row("rows.double().cpu()", "one kernel, one copy", waits=1, d2h=1, launches=1)
row("rows.type(torch.float16), rows.type('torch.cuda.HalfTensor')", "Copy.cu", launches=2)
row("(floats - floats.mean(0)).to('cuda') / floats.std().to('cuda')", "two blocking copies", waits=2, h2d=2,
    launches=1)
row("x.resize_(16)", "CUDAHooks, Resize.cpp: bytes to a larger storage", d2d=1, launches=0, allocations=1)
row("copy.deepcopy(rows)", "storage clone", d2d=1, launches=0)
row("pickle.dumps(rows)", "storage to the host", waits=1, d2h=1, launches=0)
row("torch.save(rows[0], io.BytesIO())", "its whole storage", waits=1, d2h=1, launches=0)
row("rows.is_contiguous(), rows.data_ptr(), rows.stride(), rows.is_cuda, rows.requires_grad", "host",
    launches=0)

# Indexing.
row("x[x.argmax()]", "an index without dimensions is read", waits=1, d2h=1, launches=1)
ARGMAX = "ReduceOps.cpp, argmax_argmin_impl: reshape({-1}), a view of what has one dimension"
row("x[::2].argmax()", ARGMAX, launches=1, allocations=1)
row("x[::2].argmin()", ARGMAX, launches=1, allocations=1)
row("rows[:, 0].argmax()", ARGMAX, launches=1, allocations=1)
row("rows[:, 0].argmax().item()", ARGMAX, waits=1, d2h=1, launches=1, allocations=1)
row("rows.t().argmax()", "ReduceOps.cpp: reshape({-1}) copies", launches=2, allocations=2)
row("rows[:2].argmax()", "ReduceOps.cpp: reshape({-1}), a view", launches=1, allocations=1)
row("rows[:, :1].argmax(1)", "ReduceOps.cpp: of one column a fill", launches=1, allocations=1)
row("x.gather(0, x.argmax().view(1))", NONE, launches=2)
row("rows[torch.arange(4), classes]", "host integers are copied", waits=1, h2d=1, launches=1)
row("rows[torch.arange(4, device='cuda'), classes]", NONE, launches=2)
row("rows[range(4), classes]", "a sequence is of the host", waits=1, h2d=1, launches=1)
row("rows[torch.randperm(4)]", "host integers are copied", waits=1, h2d=1, launches=1)
row("rows[:, [1, 2]] = -math.inf", "list and number are copied", waits=2, h2d=2, launches=1)
row("rows[:, 2] = -math.inf", "fill", launches=1)
row("x[~mask] = float('nan')", "not, fill by the mask", launches=2)
row("x[mask.nonzero().squeeze(1)]", "nonzero", waits=1, d2h=1)
row("x[mask] = x[mask] * 2", "nonzero twice", waits=2, d2h=2, d2d=None)
row("rows[masks].mean().item()", "nonzero, and a read", waits=2, d2h=2, d2d=None)
row("torch.where(masks, rows, -math.inf)", "a number becomes a tensor", launches=2)
row("rows.masked_fill(~masks, -math.inf).softmax(-1)", NONE, d2d=1, launches=3)
row("(rows * masks).sum() / masks.sum().clamp(min=1)", NONE, launches=6)
row("rows[classes % 2 == 0]", "nonzero", waits=1, d2h=1, d2d=None)
row("rows.index_select(1, torch.tensor([0, 2]).cuda())", "one blocking copy", waits=1, h2d=1, launches=1)
row("x[..., None, :2].expand(3, 1, 2).sum(0)", "views, a reduction", launches=1)
row("rows.t()[index] = 1.0", "the number is copied", waits=1, h2d=1, launches=1)
row("x[1:] - x[:-1], torch.diff(x)", "a difference each", launches=2)
row("torch.trapezoid(x)", "Integration.cpp, do_trapezoid: sum, add, mul, sub, mul", launches=5)
row("x.unfold(0, 3, 1).mean(-1)", "a view", launches=1)
row("torch.bincount(index, weights=y)", "SummaryOps.cu", waits=2, d2h=2, d2d=None)
row("index.unique().numel()", "UniqueCub.cu", waits=1, d2h=1, d2d=None)
row("rows.nanmean(), rows.nansum()", "nansum, isnan, not, sum of truth values, div; nansum", launches=7)
row("x.quantile(torch.tensor([0.25, 0.75], device='cuda'))",
    "the list is copied; q is checked on the host alone", waits=1, h2d=1, d2d=None)
row("torch.meshgrid(y, y, indexing='ij')", "views", launches=0)
row("torch.stack(torch.meshgrid(y, y, indexing='ij'), -1)", "one stack", launches=1)
row("torch.block_diag(eye, eye)", "zeros, a kernel each", launches=3)
row("torch.tril_indices(3, 3, device='cuda')", NONE, launches=1)
row("torch.diag(y)", "zeros, a copy to the diagonal", launches=2)
row("torch.trace(eye)", "a sum of the diagonal", launches=1)
row("torch.kron(eye, eye)", "one product", launches=1)
row("torch.full((4, 4), -math.inf, device='cuda').triu(1)", "fill, triu", launches=2)
row("masks.long().cumsum(-1) - 1", "to, cumsum, sub", launches=3)
row("int(masks.sum(-1).max())", "a sum of truth values, max", waits=1, d2h=1, launches=3)
row("torch.segment_reduce(x, 'sum', lengths=torch.tensor([3, 5], device='cuda'))",
    "SegmentReduce.cpp: the lengths are copied; least length and sum are read", waits=3, h2d=1, d2h=2,
    d2d=None)
row("y.repeat_interleave(torch.tensor([1, 2, 1]).cuda(), output_size=4)", "one blocking copy", waits=1, h2d=1,
    d2d=None)
row("torch.scatter(torch.zeros(4, 6, device='cuda'), 1, classes[:, None], 1.0)", "zeros, its clone, scatter",
    d2d=1, launches=2)
row("torch.full_like(rows, 0.1).scatter_(1, classes[:, None], 0.9)", NONE, launches=2)
row("x.histc(bins=4, min=0.0, max=1.0).argmax().item()", READ, waits=1, d2h=1)
row("torch.bucketize(x, torch.tensor([0.2, 0.5]).to('cuda'))", "one blocking copy", waits=1, h2d=1,
    launches=1)
row("torch.unique(index, sorted=False, return_counts=True)[1].tolist()", "UniqueCub.cu; a read", waits=2,
    d2h=2, d2d=None)
row("torch.isin(index, torch.tensor([1, 2]).cuda())", "one blocking copy", waits=1, h2d=1, d2d=None)
row("whole.float().std(0, unbiased=False)", "to, std", launches=2)

# Losses.
row("F.gaussian_nll_loss(rows, rows, rows.abs())", "functional.py: a negative variance is asked for", waits=1,
    d2h=1, d2d=1)
row("F.cross_entropy(rows, classes, weight=rows[0])", "log_softmax, nll_loss", launches=2)
row("F.cross_entropy(rows, classes, reduction='none')",
    "log_softmax; cuda/Loss.cu: total_weight.zero_(), nll_loss", launches=3)
row("F.ctc_loss(rows[:, None].log_softmax(-1), index[None, 1:], classes[:1] + 4, classes[:1] + 2, blank=5)",
    "lengths of the device are read", waits=None, h2d=None, d2h=None, d2d=None)
row("F.gumbel_softmax(rows)", "exponential, log, neg, add, div, softmax", launches=6)
row("F.gumbel_softmax(rows, hard=True)", "and max, zeros, scatter, sub, add", launches=11)
row("1 - (2 * (rows * rows).sum() + 1) / (rows.sum() + rows.sum() + 1)", "dice",  launches=10)

# Layers and functions.
row("F.embedding(whole % 4, rows)", "rem, index_select", launches=2)
row("F.embedding(index, rows, max_norm=1.0)", "EmbeddingBag: recorded", waits=None, d2h=None, d2d=None)
row("F.pixel_unshuffle(rows.view(1, 1, 4, 6), 2)", "a permuted view", launches=1)
row("F.grid_sample(rows[None, None], F.affine_grid(torch.eye(2, 3).cuda()[None], (1, 1, 4, 6), "
    "align_corners=False), align_corners=False)", "one blocking copy", waits=1, h2d=1, d2d=None)
row("F.adaptive_max_pool2d(rows[None], 2)", "AdaptiveMaxPooling2d.cu", launches=1)
row("(rows / (rows.abs().amax() / 127)).round().clamp(-127, 127).to(torch.int8)",
    "abs, amax, div, div, round, clamp, to", launches=7)
row("rows.to(memory_format=torch.channels_last) if rows.dim() == 4 else rows.view(1, 2, 2, "
    "6).to(memory_format=torch.channels_last)", "one kernel", launches=1)
row("torch.complex(y, y), y + 1j * y", "complex; mul, add", launches=3)
# ATen/native/UnaryOps.cpp, unary_op_impl_with_complex_to_float_out: a complex result, its real part copied.
row("torch.polar(y, y).real.clone(), torch.polar(y, y).angle()",
    "polar, a strided copy; polar, angle as a complex number, a strided copy", launches=5, allocations=5)
row("torch.view_as_real(torch.view_as_complex(rows.view(4, 3, 2)) * torch.polar(y, y))", "polar, mul",
    launches=2)

# Linear algebra.
row("torch.cholesky_solve(eye, eye)", "cuSOLVER or MAGMA: recorded", waits=None, h2d=None, d2h=None, d2d=None)
row("torch.linalg.lu_factor(eye)", "errors are read", waits=1, d2h=1, d2d=None)
row("torch.linalg.norm(rows), torch.linalg.norm(rows, dim=1)", "a reduction each", launches=2)
row("torch.linalg.cross(eye, eye)", NONE, launches=1)
row("torch.linalg.matrix_rank(eye)", "cuSOLVER: recorded", waits=None, h2d=None, d2h=None, d2d=None)
row("torch.linalg.cholesky(eye @ eye.t() + 0.1 * torch.eye(3, device='cuda')).diagonal().log().sum().item()",
    "errors and a value are read", waits=2, d2h=2, d2d=None)

# Foreach functions.
row("torch._foreach_addcdiv_([x, y], [x, y], [x, y], 0.5)", "MultiTensorApply.cuh", launches=1)
row("torch._foreach_lerp_([x, y], [x, y], 0.1)", "MultiTensorApply.cuh", launches=1)
row("torch._foreach_sqrt_([x, y]); torch._foreach_neg_([x, y]); torch._foreach_abs_([x, y])", "a walk each",
    launches=3)
row("torch._foreach_mul_([x, y], [0.5, 0.25])", "MultiTensorApply.cuh", launches=1)
row("torch._foreach_clamp_max_([x, y], 1.0)", "MultiTensorApply.cuh", launches=1)
row("torch._foreach_pow([x, y], 2.0)", "MultiTensorApply.cuh", launches=1)
row("torch._foreach_add_([whole, index], 1)", "integers too", launches=1)

# Distributions.
D = "distribution.py: each check is read"
row("distributions.Bernoulli(logits=x).log_prob(mask.float())", D, waits=2, d2h=2)
row("distributions.Beta(x + 1, x + 1)", "Dirichlet's concentration, and both", waits=3, d2h=3)
row("distributions.Gamma(x + 1, x + 1).rsample()", D, waits=2, d2h=2, d2d=None)
row("distributions.Exponential(x + 1).rsample()", D, waits=1, d2h=1, d2d=None)
row("distributions.Poisson(x).sample()", D, waits=1, d2h=1, d2d=None)
row("distributions.LogNormal(x, x + 1)", "Normal's two, and its own two", waits=4, d2h=4, d2d=None)
row("distributions.MultivariateNormal(y, eye)", "loc; constraints.py: square, symmetric, positive; cholesky",
    waits=5, d2h=5, d2d=None)
row("distributions.Independent(distributions.Normal(x, x + 1), 1).log_prob(x)", D, waits=3, d2h=3)
row("distributions.Normal(0.0, x + 1)", "broadcast_all makes a device tensor; two checks", waits=3, h2d=1,
    d2h=2)
row("distributions.Binomial(10, x)", "broadcast_all makes a device tensor; two checks", waits=3, h2d=1, d2h=2)
row("distributions.OneHotCategorical(logits=rows)", "Categorical's, and both of its own", waits=3, d2h=3)
row("distributions.Categorical(logits=rows).entropy()", D, waits=1, d2h=1)
row("distributions.Uniform(0.0, 1.0).sample((4,)).to('cuda')", "of the host", waits=1, h2d=1, launches=0)
row("torch.distributions.kl_divergence(one, two)", "kl.py: nothing is checked", name="kl_of_normals",
    setup="one, two = (torch.distributions.Normal(torch.rand(4, device='cuda'), torch.ones(4, "
    "device='cuda')) for _ in range(2))", d2d=None)
row("torch.distributions.Distribution.set_default_validate_args(True); base = "
    "torch.distributions.Normal(loc, loc + 1); policy = torch.distributions.TransformedDistribution(base, "
    "[torch.distributions.TanhTransform(cache_size=1)]); policy.log_prob(policy.rsample())",
    "Normal's two; the value's check; its base's", name="squashed_gaussian_policy",
    setup="loc = torch.rand(4, device='cuda')", waits=4, d2h=4, d2d=None)

# Padding, and what NumPy has.
row("nn.utils.rnn.pad_sequence([x, y], batch_first=True)", "full, a copy of bytes each", d2d=2, launches=1,
    allocations=1)
row("nn.utils.rnn.pad_sequence([rows, rows[:2]])", "full, a strided copy each", launches=3)
row("nn.utils.rnn.pad_sequence(list(rows.split([1, 3])), batch_first=True, padding_value=-1)",
    "full, a copy each", d2d=2, launches=1)
row("torch.as_tensor(numpy.ones(3, 'float32'), device='cuda')", "tensor_new.cpp", setup="import numpy",
    waits=1, h2d=1, launches=0)
row("torch.tensor(numpy.float32(1.5), device='cuda')", "tensor_new.cpp", setup="import numpy", waits=1, h2d=1,
    launches=0)
row("x * numpy.float64(2)", "a number", setup="import numpy", launches=1)
row("torch.from_numpy(numpy.ones((4, 6), 'float32')).pin_memory().to('cuda', non_blocking=True)", "Copy.cu",
    setup="import numpy", h2d=1, launches=0)

# Streams, events, memory, graphs.
row("torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated(), torch.cuda.memory_reserved()", "host",
    launches=0)
row("torch.cuda.mem_get_info()", "cudaMemGetInfo", launches=0)
row("torch.cuda.memory_summary()", "host", launches=0)
row("torch.cuda.get_device_properties(0).total_memory, torch.cuda.device_count(), "
    "torch.cuda.current_device()", "host", launches=0)
row("a, b = (torch.cuda.Event(enable_timing=True) for _ in 'ab'); a.record(); rows.add_(1); b.record(); "
    "torch.cuda.synchronize(); a.elapsed_time(b)", "one wait for the device", waits=1, launches=1)
row("a, b = (torch.cuda.Event(enable_timing=True) for _ in 'ab'); a.record(); b.record(); b.synchronize(); "
    "a.elapsed_time(b)", "one wait for the event", waits=1, launches=0)
row("torch.cuda.synchronize(); rows.add_(1); torch.cuda.synchronize()", "two waits for the device", waits=2,
    launches=1)
row("s = torch.cuda.Stream(); "
    "s.wait_stream(torch.cuda.current_stream())\nwith torch.cuda.stream(s): z = rows * 2\ns.synchronize()",
    "one wait for the stream", waits=1, launches=1)
row("e = torch.cuda.Event(); e.record(); torch.cuda.current_stream().wait_event(e); e.wait()",
    "the device waits", launches=0)
row("torch.get_rng_state(), torch.cuda.get_rng_state(), torch.cuda.initial_seed()", "host", launches=0)
row("g = torch.Generator(device='cuda'); g.manual_seed(3); torch.rand(4, device='cuda', generator=g)", NONE,
    launches=1)
