"""FNV-1a with 64 bits: a short, portable hash for cache keys.

Not cryptographic: collisions are easy to make on purpose, so users of a key must compare what it stands for.
Source: G. Fowler, L. C. Noll, K.-P. Vo, "The FNV Non-Cryptographic Hash Algorithm" (draft-eastlake-fnv).
Knows nothing about what is hashed.
"""

_OFFSET = 0xCBF29CE484222325
_PRIME = 0x100000001B3
_MASK = 0xFFFFFFFFFFFFFFFF


def fnv1a64(data: bytes) -> str:
    """The hash of `data` as 16 lower-case hex digits."""
    value = _OFFSET
    for byte in data:
        value = (value ^ byte) * _PRIME & _MASK
    return f"{value:016x}"


def response_key(model: str, context: str, message: str) -> str:
    """The cache key of a response: the hash of model, 0x01, context, 0x01, message, encoded as UTF-8.

    A text that contains 0x01 can produce the key of another triple, so a cache compares the whole prompt too.
    """
    return fnv1a64("\x01".join((model, context, message)).encode("utf-8", "surrogatepass"))
