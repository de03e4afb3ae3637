"""CRC-32, zlib's, with which RocketMQ seals records: of every record that is moved or read.

zlib-ng computes it with the processor's vector instructions, in a third of zlib's time for a record
of ours. Where it is not installed (a Spark cluster that was sent only this code) zlib does.
"""

try:
    from zlib_ng.zlib_ng import crc32
except ImportError:
    from zlib import crc32

__all__ = ["crc32"]
