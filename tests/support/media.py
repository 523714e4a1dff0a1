"""Small real files: their headers are right, and there is no more in them than is needed."""

import base64
import os
import struct
import zlib


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def data_url(media_type: str, data: bytes) -> str:
    return f"data:{media_type};base64,{encoded(data)}"


# -- images -----------------------------------------------------------------------------------


def png(width, height):
    def chunk(kind, body):
        sum_ = zlib.crc32(kind + body)
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", sum_)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IEND", b"")


def jpeg(width, height, *, before=0, marker=0xC2):
    """`before` bytes of a profile and a preview, with a frame of its own in it, come first."""
    preview = b"\xff\xc0\x00\x11\x08" + struct.pack(">HH", 1, 1)
    found = b"\xff\xd8"
    while before > 0:
        body = (preview + b"x" * 60_000)[: min(before, 60_000)]
        found += b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body
        before -= len(body)
    frame = struct.pack(">BHHB", 8, height, width, 3) + b"\1\x11\0" * 3
    found += b"\xff\xff" + bytes([marker]) + struct.pack(">H", len(frame) + 2) + frame
    return found + b"\xff\xd9"


def gif(width, height):
    return b"GIF89a" + struct.pack("<HHBBB", width, height, 0, 0, 0) + b";"


def bmp(width, height):
    info = struct.pack("<IiiHHIIiiII", 40, width, -height, 1, 24, 0, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54, 0, 0, 54) + info


def webp(width, height, kind=b"VP8X"):
    if kind == b"VP8X":
        body = b"\0" * 4 + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    elif kind == b"VP8L":
        body = b"\x2f" + ((width - 1) | (height - 1) << 14).to_bytes(4, "little")
    else:
        body = b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height)
    chunk = kind + struct.pack("<I", len(body)) + body
    return b"RIFF" + struct.pack("<I", len(chunk) + 4) + b"WEBP" + chunk


def heic(width, height, brand=b"heic"):
    def box(kind, body):
        return struct.pack(">I", len(body) + 8) + kind + body

    sizes = b"".join(
        box(b"ispe", b"\0" * 4 + struct.pack(">II", *size))
        for size in ((512, 512), (width, height), (160, 120))
    )
    return box(b"ftyp", brand + b"\0\0\0\0mif1" + brand) + box(b"meta", b"\0" * 4 + sizes)


# -- recordings -------------------------------------------------------------------------------


def wav(seconds, rate=16_000, *, size=None, before=b""):
    data = b"\0" * int(seconds * rate * 2)
    size = len(data) if size is None else size
    form = struct.pack("<HHIIHH", 1, 1, rate, rate * 2, 2, 16)
    body = b"WAVEfmt " + struct.pack("<I", 16) + form + before
    return b"RIFF" + struct.pack("<I", 0) + body + b"data" + struct.pack("<I", size) + data


def mp3(seconds, kbits=64, *, frames=None, tag=0):
    """MPEG 1 layer III at 44,100 Hz; with `frames`, a header of a variable bit rate says it."""
    index = (32, 40, 48, 56, 64, 80, 96, 112, 128).index(kbits) + 1
    head = bytes([0xFF, 0xFB, index << 4, 0x44])
    body = head + b"\0" * 32
    if frames is not None:
        body += b"Xing" + struct.pack(">II", 1, frames)
    size = bytes([tag >> 21 & 127, tag >> 14 & 127, tag >> 7 & 127, tag & 127])
    start = b"ID3\4\0\0" + size + b"\0" * tag if tag else b""
    return start + body.ljust(int(seconds * kbits * 125), b"\0")


def flac(seconds, rate=44_100):
    samples = int(seconds * rate)
    bits = (rate << 44 | 1 << 41 | 15 << 36 | samples).to_bytes(8, "big")
    return b"fLaC\0\0\0\x22" + b"\x10\0\x10\0" + b"\0" * 6 + bits + b"\0" * int(seconds * 40_000)


def ogg(seconds, codec="opus", rate=48_000):
    def page(position, body):
        head = b"OggS\0\0" + position.to_bytes(8, "little") + b"\0" * 12
        return head + bytes([1, min(len(body), 255)]) + body

    first = b"OpusHead\1\1" + struct.pack("<HIHB", 312, 44_100, 0, 0)
    if codec == "vorbis":
        first = b"\1vorbis" + struct.pack("<IBI", 0, 1, rate) + b"\0" * 12
    end = int(seconds * rate) + (312 if codec == "opus" else 0)
    return page(0, first) + b"\0" * int(seconds * 4_000) + page(end, b"x")


def m4a(seconds, *, version=0, last=True):
    def box(kind, body):
        return struct.pack(">I", len(body) + 8) + kind + body

    times = struct.pack(">IIII", 0, 0, 1_000, int(seconds * 1_000))
    if version:
        times = struct.pack(">QQIQ", 0, 0, 1_000, int(seconds * 1_000))
    header = box(b"moov", box(b"mvhd", bytes([version, 0, 0, 0]) + times + b"\0" * 80))
    sound = struct.pack(">I", 1) + b"mdat" + struct.pack(">Q", 16 + int(seconds * 4_000))
    sound += b"\0" * int(seconds * 4_000)
    start = box(b"ftyp", b"M4A \0\0\0\0")
    return start + (sound + header if last else header + sound)


# -- documents --------------------------------------------------------------------------------

LINE = b"The quick brown fox jumps over the lazy dog. "


def pdf(pages, *, lines=20, filler=0, packed=False, hexadecimal=False):
    """A PDF with `lines` of text on each page; `packed` puts the pages into an object stream."""
    found = b"%PDF-1.5\n"

    def put(number, body):
        nonlocal found
        found += b"%d 0 obj\n%s\nendobj\n" % (number, body)

    def stream(about, body):
        body = zlib.compress(body)
        head = b"<< /Length %d /Filter /FlateDecode %s >>" % (len(body), about)
        return head + b"\nstream\n" + body + b"\nendstream"

    shown = b"<" + (LINE * lines).hex().encode() + b">" if hexadecimal else b"(%s)" % (LINE * lines)
    tree = b"<< /Type /Pages /Kids [] /Count %d >>" % pages
    objects = [b"<< /Type /Page /Parent 2 0 R /Contents %d 0 R >>" % (10 + n) for n in range(pages)]
    put(1, b"<< /Type /Catalog /Pages 2 0 R >>")
    if packed:
        put(2, stream(b"/Type /ObjStm /N %d" % (pages + 1), b"\n".join([tree, *objects])))
    else:
        put(2, tree)
        for number, each in enumerate(objects):
            put(10_000 + number, each)
    for number in range(pages):
        put(10 + number, stream(b"", b"BT /F1 12 Tf " + shown + b" Tj ET"))
    if filler:
        put(9, b"<< /Subtype /Image >>\nstream\n" + os.urandom(filler) + b"\nendstream")
    return found + b"trailer << /Root 1 0 R >>\n%%EOF"
