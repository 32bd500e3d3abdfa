"""Encrypted zip files, which the standard library reads but does not write."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

ONES = 0xFFFFFFFF


def _table() -> list[int]:
    """The CRC-32 of every single byte, without its first and last inversion."""
    return [zlib.crc32(bytes([byte]), ONES) ^ ONES for byte in range(256)]


TABLE = _table()


def zip_crypto(data: bytes, password: bytes, check: int) -> bytes:
    """PKWARE's traditional encryption (APPNOTE.TXT, section 6.1), written from its text."""
    first, second, third = 0x12345678, 0x23456789, 0x34567890
    out = bytearray()
    header = bytes(range(11)) + bytes([check])
    for place, byte in enumerate(password + header + data):
        if place >= len(password):
            word = (third | 2) & 0xFFFF
            out.append(byte ^ ((word * (word ^ 1)) >> 8 & 255))
        first = TABLE[(first ^ byte) & 255] ^ (first >> 8)
        second = ((second + (first & 255)) * 134775813 + 1) & ONES
        third = TABLE[(third ^ (second >> 24)) & 255] ^ (third >> 8)
    return bytes(out)


def encrypted_zip(
    path: Path, files: Mapping[str, bytes] | Iterable[tuple[str, bytes]], password: bytes
) -> Path:
    """Write a zip file whose members are deflated and encrypted."""
    members = files.items() if isinstance(files, Mapping) else files
    directory, count = b"", 0
    with open(path, "wb") as out:
        for name, data in members:
            where, sum_, coded = out.tell(), zlib.crc32(data), name.encode()
            deflate = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)
            packed = zip_crypto(deflate.compress(data) + deflate.flush(), password, sum_ >> 24)
            sizes = (sum_, len(packed), len(data), len(coded), 0)
            common = struct.pack("<HHHHHLLLHH", 20, 1, zlib.DEFLATED, 0, 33, *sizes)
            out.write(b"PK\3\4" + common + coded + packed)
            directory += b"PK\1\2" + struct.pack("<H", 20) + common
            directory += struct.pack("<HHHLL", 0, 0, 0, 0, where) + coded
            count += 1
        start = out.tell()
        end = struct.pack("<HHHHLLH", 0, 0, count, count, len(directory), start, 0)
        out.write(directory + b"PK\5\6" + end)
    return path
