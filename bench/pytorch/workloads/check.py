"""The allocator of this release runs, copies are real, and a snapshot has Python stacks."""
import torch

assert torch.cuda.is_available()
torch.cuda.memory._record_memory_history(stacks="python")
x = torch.arange(4, dtype=torch.float32).cuda()
assert x.cpu().tolist() == [0, 1, 2, 3]  # copies are real, kernels are not
(torch.randn(512, 512, device="cuda") @ torch.randn(512, 512, device="cuda")).sum().item()
s = torch.cuda.memory._snapshot()
assert s["segments"] and s["device_traces"][0]
assert any("check.py" in f["filename"] for e in s["device_traces"][0] for f in e["frames"])
p = torch.cuda.get_device_properties(0)
assert (p.major, p.minor, p.multi_processor_count, p.warp_size) == (9, 0, 132, 32), p
print("torch", torch.__version__, "cuda", torch.version.cuda, p)
