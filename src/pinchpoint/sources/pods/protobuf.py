"""Just enough of protobuf to read a message whose fields are texts and messages.

Wire format: Protocol Buffers documentation, "Encoding". A library would cost more than these lines.
"""

from collections.abc import Iterator

_VARINT, _SIXTY_FOUR_BITS, _LENGTH, _THIRTY_TWO_BITS = 0, 1, 2, 5
_LONGEST_VARINT_BYTES = 10


def fields(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """The number and content of each text, bytes or message field; numbers are passed over. Raises ValueError."""
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        kind = tag & 7
        length = 0
        if kind == _VARINT:
            _, position = _varint(message, position)
        elif kind == _LENGTH:
            length, position = _varint(message, position)
        elif kind in (_SIXTY_FOUR_BITS, _THIRTY_TWO_BITS):
            length = 8 if kind == _SIXTY_FOUR_BITS else 4
        else:
            raise ValueError(f"wire type {kind}")
        end = position + length
        if end > len(message):
            raise ValueError("a field is longer than its message")
        if kind == _LENGTH:
            yield tag >> 3, message[position:end]
        position = end


def text(content: memoryview) -> str:
    """A text field. Raises ValueError."""
    return str(content, "utf-8")


def _varint(message: memoryview, position: int) -> tuple[int, int]:
    number = 0
    for place, byte in enumerate(message[position : position + _LONGEST_VARINT_BYTES]):
        number |= (byte & 127) << 7 * place
        if byte < 128:
            return number, position + place + 1
    raise ValueError("a number does not end")
