"""JAX on the CPU.

    arrays.py LEAK STEPS FOLDER [profile]      LEAK: clean, compiled, list, programs

JAX drops a compiled program with its function, so that compiled is clean. With `profile` it
saves JAX's own profile of device memory at five steps."""
import os
import sys

import jax
import jax.numpy as jnp

LEAK, STEPS = sys.argv[1], int(sys.argv[2])


@jax.jit
def step(w, x):
    return w - 0.01 * jax.grad(lambda w: jnp.square(x @ w).mean())(w)


def main():
    w, kept = jnp.zeros((256, 256)), []
    for i in range(STEPS * 4):
        w = step(w, jnp.ones((2048, 256)))
        if LEAK == "list":
            kept.append(jnp.square(w))  # LINE list
        if LEAK in ("compiled", "programs") and i % 4 == 0:
            program = jax.jit(lambda w: w * i + 1)
            program(w)  # LINE programs
            if LEAK == "programs":
                kept.append(program)  # HOLDS programs
        if "profile" in sys.argv and i % (STEPS * 4 // 5) == 0:
            jax.profiler.save_device_memory_profile(os.path.join(sys.argv[3], f"memory-{i:04}.prof"))
    w.block_until_ready()
    print(f"steps {i + 1} of {STEPS * 4}, 0 of an optimizer", flush=True)


main()
