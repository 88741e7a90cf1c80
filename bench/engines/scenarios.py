"""The programs that run.py tries, and the right answer to each."""
import dataclasses

STEPS = 40


@dataclasses.dataclass
class Scenario:
    name: str
    program: str  # its file and first argument
    more: str = ""  # further arguments
    leak: bool = True  # whether the line marked LINE, or the holder marked HOLDS, is to be named
    devices: tuple = ("cuda", "cpu")
    python: str = "torch"  # which environment it needs
    steps: int = STEPS
    says: str = ""  # a regular expression of what the problem says, where no line of the program is to blame
    holder: str = ""  # a regular expression of the holder's path, where a line of a package fills it
    env: tuple = ()  # variables, as pairs
    files: bool = False  # whether `diagnose` judges the files that it writes
    left: dict = dataclasses.field(default_factory=dict)  # devices that are left out, and why


def clean(name, program, **more):
    return Scenario(name, program, leak=False, **more)


def ucx(version, leak, **more):
    name = "-".join(["ucx", version, *(value for _, value in more.get("env", ()))])
    return Scenario(name, "../../cases/programs/unmap.py 15", version, leak, ("cpu",), "ucx", 0, r"UCX 1\.17 to 1\.20", **more)


def nixl(version, leak, **more):
    name = "-".join(["nixl", version, *(value for _, value in more.get("env", ()))])
    return Scenario(name, "agent.py 15", version, leak, ("cpu",), "nixl", 0, r"UCX 1\.17 to 1\.20", **more)


VALUES = "its generated text depends on values, which the device does not compute"
MEGATRON = "its loss is computed on a device alone"
ZERO = "DeepSpeed was set up for a device"
NCCL = "its ranks need NCCL on a device"


SCENARIOS = [
    clean("trainer", "trainer.py clean"),
    Scenario("trainer-callback", "trainer.py callback"),
    Scenario("trainer-loss", "trainer.py metrics"),
    Scenario("trainer-logits", "trainer.py logits"),
    Scenario("trainer-hook", "trainer.py hook"),
    clean("accelerate", "accelerated.py clean"),
    clean("accelerate-ema", "accelerated.py ema"),
    Scenario("accelerate-loss", "accelerated.py losses"),
    Scenario("accelerate-logger", "accelerated.py logger"),
    clean("lightning", "lightened.py clean"),
    Scenario("lightning-outputs", "lightened.py outputs"),
    Scenario("lightning-callback", "lightened.py callback"),
    Scenario("lightning-metric", "lightened.py metric", holder=r"\.seen\.value\["),
    clean("peft", "adapters.py clean"),
    Scenario("peft-added", "adapters.py added", holder=r"kept by model\S*\.layers\S*\.weight in main"),
    clean("sft", "sft.py clean"),
    Scenario("sft-callback", "sft.py callback"),
    clean("grpo", "grpo.py clean", steps=24, devices=("cpu",), left={"cuda": VALUES}),
    Scenario("grpo-rewards", "grpo.py rewards", steps=24, devices=("cpu",), left={"cuda": VALUES}),
    clean("zero2", "zero.py clean", more="2", devices=("cuda",), left={"cpu": ZERO}),
    Scenario("zero2-logits", "zero.py losses", more="2", devices=("cuda",), left={"cpu": ZERO}),
    Scenario("zero2-checkpoints", "zero.py checkpoints", more="2", devices=("cuda",), left={"cpu": ZERO}),
    clean("zero3-offload", "zero.py clean", more="3", devices=("cuda",), left={"cpu": ZERO}),
    Scenario("zero3-logits", "zero.py losses", more="3", devices=("cuda",), left={"cpu": ZERO}),
    clean("images", "images.py clean", steps=100),
    Scenario("images-gallery", "images.py gallery", steps=300),
    Scenario("images-steps", "images.py steps", steps=300),
    clean("recompute", "plain.py recompute"),
    clean("offload", "plain.py offload"),
    clean("graphs", "plain.py graphs", devices=("cuda",), steps=80, left={"cpu": "the CPU has no graphs"}),
    Scenario("graphs-outputs", "plain.py graphs-outputs", devices=("cuda",), steps=80, left={"cpu": "the CPU has no graphs"}),
    clean("replay-buffer", "plain.py replay"),
    clean("cycles", "plain.py cycle", steps=600),
    clean("workers", "plain.py workers", steps=300),
    Scenario("worker-texts", "plain.py worker-texts", steps=400, devices=("cpu",), left={"cuda": "the workers use no device"}),
    Scenario("worker-tensors", "plain.py worker-tensors", steps=400, devices=("cpu",), left={"cuda": "the workers use no device"}),
    Scenario("hooks", "plain.py hooks"),
    clean("compiled", "plain.py compiled"),
    clean("accumulation", "plain.py accumulation", steps=240),
    clean("validation", "plain.py validation"),
    Scenario("losses", "plain.py losses"),
    Scenario("exceptions", "plain.py exceptions"),
    Scenario("checkpoints", "plain.py checkpoints"),
    Scenario("dataset", "plain.py dataset"),
    Scenario("predictions", "plain.py predictions"),
    clean("python313-validation", "plain.py validation", python="python313"),
    Scenario("python313-losses", "plain.py losses", python="python313"),
    Scenario("python313-exceptions", "plain.py exceptions", python="python313"),
    Scenario("python313-hooks", "plain.py hooks", python="python313"),
    clean("fsdp2", "sharded.py clean", devices=("cpu",), left={"cuda": NCCL}),
    Scenario("fsdp2-losses", "sharded.py losses", devices=("cpu",), left={"cuda": NCCL}),
    Scenario("fsdp2-hook", "sharded.py hook", devices=("cpu",), left={"cuda": NCCL}),
    clean("torchtitan", "titan.py clean", python="titan"),
    Scenario("torchtitan-losses", "titan.py losses", python="titan"),
    Scenario("torchtitan-logits", "titan.py logits", python="titan"),
    clean("megatron", "megatrained.py clean", devices=("cuda",), python="megatron", left={"cpu": MEGATRON}),
    Scenario("megatron-logits", "megatrained.py logits", devices=("cuda",), python="megatron", left={"cpu": MEGATRON}),
    Scenario("megatron-losses", "megatrained.py losses", devices=("cuda",), python="megatron", left={"cpu": MEGATRON}),
    clean("jax", "arrays.py clean", devices=("cpu",), python="jax", steps=150),
    Scenario("jax-list", "arrays.py list", devices=("cpu",), python="jax", steps=600, says="`kept in main\\(\\)`, a list"),
    clean("jax-compiled", "arrays.py compiled", devices=("cpu",), python="jax", steps=150),
    Scenario("jax-programs", "arrays.py programs", devices=("cpu",), python="jax", steps=600, says="`kept in main\\(\\)`, a list|arrays.py:29"),
    clean("jax-profile", "arrays.py clean", more="profile", devices=("cpu",), python="jax", files=True),
    Scenario("jax-profile-list", "arrays.py list", more="profile", devices=("cpu",), python="jax", files=True),
    ucx("1.18.1", True),
    ucx("1.19.0", True),
    ucx("1.20.1", True),
    ucx("1.20.1", False, env=(("UCX_MEM_MMAP_HOOK_MODE", "none"),)),
    ucx("1.21.0", False),
    ucx("1.22.0", False),
    nixl("0.9.0", True),
    nixl("1.0.0", False),  # sets UCX_RCACHE_MAX_UNRELEASED itself
    nixl("1.0.0", True, env=(("UCX_RCACHE_MAX_UNRELEASED", "inf"),)),
    nixl("1.5.1", False),
]
