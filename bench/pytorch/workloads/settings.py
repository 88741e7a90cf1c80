"""Sizes, and the settings and kinds of pools that a release takes, drawn."""
from programs import RELEASE

KIB, MIB = 1 << 10, 1 << 20


def size(rng):
    kind = rng.random()
    if kind < 0.35:
        return rng.randrange(1, 64 * KIB)
    if kind < 0.55:
        return rng.randrange(64 * KIB, MIB + 4 * KIB)
    if kind < 0.65:
        return rng.choice((512, MIB - 1, MIB, MIB + 1, 2 * MIB, 10 * MIB - 1, 10 * MIB,
                           10 * MIB + 1, 20 * MIB, 1 << rng.randrange(9, 27)))
    if kind < 0.85:
        return rng.randrange(MIB, 12 * MIB)
    if kind < 0.97:
        return rng.randrange(10 * MIB, 90 * MIB)
    return rng.randrange(90 * MIB, 300 * MIB)


def draw(rng):
    """Settings that this release takes, drawn."""
    out = []

    def maybe(chance, since, *options):
        drawn = rng.random() < chance and rng.choice(options)
        if drawn and RELEASE >= since:
            out.append(drawn)
            return drawn

    large = 20
    if option := maybe(0.2, (2, 11), *(f"large_segment_size_mb:{n}" for n in (16, 32, 64))):
        large = max(large, int(option.partition(":")[2]))
    if maybe(0.3, (0, 0), "expandable_segments:True"):
        maybe(0.3, (2, 15), "expandable_segments_reserve:1G", "expandable_segments_reserve:4G")
    if maybe(0.4, (0, 0), *(f"max_split_size_mb:{n + large}" for n in (1, 20, 60, 200))):
        maybe(0.4, (0, 0), *(f"max_non_split_rounding_mb:{n + large}" for n in (1, 10, 80)))
    maybe(0.3, (0, 0), *(f"roundup_power2_divisions:{n}" for n in ("4", "[1:8,8:4,64:2,>:4]", "[256:1,512:2,>:16]")))
    maybe(0.3, (0, 0), *(f"garbage_collection_threshold:{n}" for n in (0.3, 0.6, 0.9)))
    if maybe(0.2, (2, 10), "per_process_memory_fraction:0.5", "per_process_memory_fraction:0.8"):
        maybe(0.3, (2, 12), "throw_on_cudamalloc_oom:True")
    maybe(0.2, (2, 9), "graph_capture_record_stream_reuse:True")
    maybe(0.2, (2, 13), "pinned_max_round_threshold_mb:4", "pinned_max_cached_size_mb:8")
    return ",".join(out)


def kinds_of_pools():
    kinds = [{}]
    if RELEASE >= (2, 8):
        kinds.append({"use_on_oom": True})
    if RELEASE >= (2, 10):
        kinds.append({"no_split": True})
    return kinds
