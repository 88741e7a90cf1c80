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
    env: tuple = ()  # variables, as pairs


def clean(name, program, **more):
    return Scenario(name, program, leak=False, **more)


def ucx(version, leak, **more):
    name = "-".join(["ucx", version, *(value for _, value in more.get("env", ()))])
    return Scenario(name, "../../cases/programs/unmap.py 15", version, leak, ("cpu",), "ucx", says=r"UCX 1\.17 to 1\.20", **more)


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
    Scenario("lightning-metric", "lightened.py metric", devices=("cuda",)),  # less than 4 MiB, below what check judges
    clean("peft", "adapters.py clean"),
    Scenario("peft-added", "adapters.py added", devices=("cuda",)),  # the same
    clean("sft", "sft.py clean"),
    Scenario("sft-callback", "sft.py callback"),
    clean("grpo", "grpo.py clean", steps=24, devices=("cpu",)),  # what it generates depends on values
    Scenario("grpo-rewards", "grpo.py rewards", steps=24, devices=("cpu",)),
    clean("zero2", "zero.py clean", more="2", devices=("cuda",)),
    Scenario("zero2-logits", "zero.py losses", more="2", devices=("cuda",)),
    Scenario("zero2-checkpoints", "zero.py checkpoints", more="2", devices=("cuda",)),
    clean("zero3-offload", "zero.py clean", more="3", devices=("cuda",)),
    Scenario("zero3-logits", "zero.py losses", more="3", devices=("cuda",)),
    clean("images", "images.py clean"),
    Scenario("images-gallery", "images.py gallery"),
    Scenario("images-steps", "images.py steps"),
    clean("recompute", "plain.py recompute"),
    clean("offload", "plain.py offload"),
    clean("graphs", "plain.py graphs", devices=("cuda",)),
    clean("replay-buffer", "plain.py replay"),
    clean("cycles", "plain.py cycle"),
    clean("workers", "plain.py workers"),
    Scenario("hooks", "plain.py hooks"),
    clean("compiled", "plain.py compiled"),
    clean("accumulation", "plain.py accumulation", steps=240),
    clean("validation", "plain.py validation"),
    Scenario("losses", "plain.py losses"),
    Scenario("exceptions", "plain.py exceptions"),
    Scenario("checkpoints", "plain.py checkpoints"),
    Scenario("dataset", "plain.py dataset"),
    Scenario("predictions", "plain.py predictions"),
    clean("fsdp2", "sharded.py clean", devices=("cpu",)),
    Scenario("fsdp2-losses", "sharded.py losses", devices=("cpu",)),
    Scenario("fsdp2-hook", "sharded.py hook", devices=("cpu",)),
    clean("torchtitan", "titan.py clean", python="titan"),
    Scenario("torchtitan-losses", "titan.py losses", python="titan"),
    Scenario("torchtitan-logits", "titan.py logits", python="titan"),
    clean("megatron", "megatrained.py clean", devices=("cuda",), python="megatron"),  # its loss is on a device alone
    Scenario("megatron-logits", "megatrained.py logits", devices=("cuda",), python="megatron"),
    Scenario("megatron-losses", "megatrained.py losses", devices=("cuda",), python="megatron"),
    clean("jax", "arrays.py clean", devices=("cpu",), python="jax", steps=150),
    Scenario("jax-list", "arrays.py list", devices=("cpu",), python="jax", steps=600, says="`kept in main\\(\\)`, a list"),
    clean("jax-compiled", "arrays.py compiled", devices=("cpu",), python="jax", steps=150),
    Scenario("jax-programs", "arrays.py programs", devices=("cpu",), python="jax", steps=600, says="`kept in main\\(\\)`, a list"),
    ucx("1.18.1", True),
    ucx("1.19.0", True),
    ucx("1.20.1", True),
    ucx("1.20.1", False, env=(("UCX_MEM_MMAP_HOOK_MODE", "none"),)),
    ucx("1.21.0", False),
    ucx("1.22.0", False),
]
