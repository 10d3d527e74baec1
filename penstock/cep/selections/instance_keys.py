"""Instance keys: the values by which instances of a detector are routed, to spread over the tasks."""

from __future__ import annotations

from functools import cache

import xxhash

from penstock.query.errors import PenstockError

#: As many virtual partitions as keys are made for where the runtime's number is not known yet. A key that
#: falls into partition p of these falls into partition p % v of v, for every v that divides this.
ANY_PARTITIONS = 1024

_SEED = 42  # Spark's, as in penstock.kernels.hashing


@cache
def instance_keys(most: int, virtual_partitions: int = ANY_PARTITIONS) -> tuple[int, ...]:
    """An int64 key for each of ``most`` instances; number i falls into virtual partition i, then round.

    So an even route over n tasks gives the first d instances to min(d, n) of them, each as many as any other
    or one more. The first keys are the same whatever ``most`` is.

    >>> instance_keys(3, 4)
    (0, 2, 1)
    """
    if most < 1 or virtual_partitions < 1:
        raise PenstockError(
            f"instance keys need at least one instance and one virtual partition: got {most} and "
            f"{virtual_partitions}"
        )
    # The n-th key of a partition is the n-th smallest value that falls into it.
    wanted = [
        most // virtual_partitions + (partition < most % virtual_partitions)
        for partition in range(virtual_partitions)
    ]
    found: list[list[int]] = [[] for _ in wanted]
    missing, value = most, 0
    while missing:
        partition = _hash(value) % virtual_partitions
        if len(found[partition]) < wanted[partition]:
            found[partition].append(value)
            missing -= 1
        value += 1
    return tuple(found[i % virtual_partitions][i // virtual_partitions] for i in range(most))


def _hash(value: int) -> int:
    """What ``xxhash64`` of one int64 is on both runtimes, as a signed number."""
    unsigned = xxhash.xxh64_intdigest(value.to_bytes(8, "little"), seed=_SEED)
    return unsigned - (1 << 64) if unsigned >> 63 else unsigned
