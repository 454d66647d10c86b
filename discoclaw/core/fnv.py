"""FNV-1a, 64 bits: a short name for a text, the same in every program that knows the formula.

Not cryptographic: whoever wants two texts of one hash finds them. Source: G. Fowler, L. C. Noll, K.-P. Vo,
"The FNV Non-Cryptographic Hash Algorithm", draft-eastlake-fnv. Knows nothing about what is hashed.
"""

_OFFSET = 0xCBF29CE484222325
_PRIME = 0x100000001B3
_MASK = 0xFFFFFFFFFFFFFFFF


def fnv1a64(data: bytes) -> str:
    """The hash of some bytes as 16 lower-case hex digits."""
    value = _OFFSET
    for byte in data:
        value = (value ^ byte) * _PRIME & _MASK
    return f"{value:016x}"


def response_key(model: str, context: str, message: str) -> str:
    """The key of an answer: the hash of model, byte 0x01, context, byte 0x01, message, as UTF-8.

    The bytes say where one of the three ends only as long as none of them has a 0x01 in it.
    """
    return fnv1a64("\x01".join((model, context, message)).encode("utf-8", "surrogatepass"))
