"""Writes vectors.json: keys, hashes and ids that must stay the same in every release.

An implementation of its own, written from the formats that encoding.rs, id.rs, key.rs and content.rs
document, with nothing but the standard library. `python3 make.py` rewrites the file byte for byte; lines may
be added to it, but one that changes is a broken promise.
"""

import hashlib
import json
import pathlib
import uuid
from decimal import Decimal


def encode(domain, parts):
    out = len(domain).to_bytes(4, "big") + domain.encode() + len(parts).to_bytes(4, "big")
    for part in parts:
        if part is None:
            out += b"\x00"
        else:
            text = part.encode()
            out += b"\x01" + len(text).to_bytes(4, "big") + text
    return out


def sha256(domain, parts):
    return hashlib.sha256(encode(domain, parts))


def derived_id(domain, parts):
    octets = bytearray(sha256(domain, parts).digest()[:16])
    octets[6] = 0x80 | octets[6] & 0x0F
    octets[8] = 0x80 | octets[8] & 0x3F
    return str(uuid.UUID(bytes=bytes(octets)))


def key(parts):
    return ":".join(part.replace("%", "%25").replace(":", "%3A") for part in parts)


def number(value):
    sign, digits, exponent = value.as_tuple()
    digits = "".join(map(str, digits)).lstrip("0")
    if not digits:
        return "0e0"
    significant = digits.rstrip("0")
    return f"{'-' if sign else ''}{significant}e{exponent + len(digits) - len(significant)}"


def content(value):
    if value is None:
        return ["null"]
    if value is True:
        return ["true"]
    if value is False:
        return ["false"]
    if isinstance(value, Decimal):
        return ["number", number(value)]
    if isinstance(value, str):
        return ["string", value]
    if isinstance(value, list):
        return ["array", str(len(value))] + [part for item in value for part in content(item)]
    members = sorted(value.items(), key=lambda member: member[0].encode())
    return ["object", str(len(value))] + [part for name, item in members for part in [name, *content(item)]]


def fingerprint(text, fields):
    unit = json.loads(text, parse_int=Decimal, parse_float=Decimal)
    if fields is not None:
        unit = {field: unit.get(field) for field in fields}
    return sha256("refrain/v1/content", content(unit)).hexdigest()


PART_LISTS = [
    ["a"],
    [""],
    [None],
    ["a", "b"],
    ["ab"],
    ["a", ""],
    ["a", None],
    ["a:b", "c"],
    ["a", "b:c"],
    ["\x00", "\x01\x00\x00\x00\x01a"],
    ["é", "e\u0301"],
    ["😀" * 100],
    ["x"] * 300,
]

RUNS = [
    ("shop", "revenue-daily", "2026-06-09T00:00:00Z"),
    ("shop", "audit-digest", "2026-06-09T14:00:00Z/acme"),
    ("shop", "welcome-email", "42"),
    ("shop", "welcome-email", "Zürich 😀"),
    ("s", "hop-welcome-email", "42"),
    ("shop", "long-key", "k" * 512),
]

EFFECTS = [
    ("shop", "notify:new-invoice:INV-7", 1),
    ("shop", "notify:new-invoice:INV-7", 2),
    ("shop", "slack:revenue:2026-06-09", 1),
    ("other", "slack:revenue:2026-06-09", 1),
    ("shop", "email:welcome:42", 4294967295),
]

SURROGATES = [
    ["2026-06-09", "EU"],
    ["2026-06-09", None],
    ["2026-06-09", ""],
    [None, None],
    ["2026-06-09", "sku-1", "77"],
    ["Größe", "größe"],
    [None],
    [""],
    ["a:b", "c"],
    ["a", "b:c"],
    [None, "EU"],
    ["-9223372036854775808", "9223372036854775807"],
    ["it's", 'a "name"', "\\x00 \\n", "\t\r\n"],
    ["é", "e\u0301"],
    # Around the ends of the first two blocks of SHA-256: 33 bytes of the encoding are not the text's.
    *(["x" * length] for length in (21, 22, 23, 30, 31, 32, 85, 86, 87, 95)),
    ["ü" * 11, "😀" * 100],
    ["x"] * 33,
]

KEYS = [
    ["invoice", "INV-7"],
    ["a:b", "c"],
    ["a", "b:c"],
    ["100%", "%3A"],
    ["%", ":", "::", "%%"],
    ["Zürich", "😀"],
    ["-7"],
]

UNITS = [
    ('{"id":7,"total":10.50,"paid":true,"note":null}', None),
    (' {\n"note" : null, "paid":true, "total":1.05e1 ,"id":7.0}\t', None),
    ('{"id":"7","total":10.50,"paid":true,"note":null}', None),
    ('{"id":7,"total":10.50,"seen":"2026-06-09"}', ["id", "total"]),
    ('{"id":7,"total":10.50}', None),
    ('{"id":7}', ["id", "total"]),
    ('{"id":7,"total":null}', None),
    ("null", None),
    ('"null"', None),
    ("0", None),
    ("-0.000e9", None),
    ("1", None),
    ("10e-1", None),
    ("-1", None),
    ("12345678901234567890123", None),
    ("12345678901234567890124", None),
    ("1e131072", None),
    ("0.1", None),
    ("[]", None),
    ("{}", None),
    ("[[],{}]", None),
    ("[1,[2,3]]", None),
    ("[[1,2],3]", None),
    ('"\\u00e9\\n\\ud83d\\ude00"', None),
    ('{"\\u00e9":1,"z":2,"\\ud83d\\ude00":3,"\\uffff":4}', None),
]

VECTORS = {
    "encodings": [
        {
            "domain": domain,
            "parts": parts,
            "bytes": encode(domain, parts).hex(),
            "sha256": sha256(domain, parts).hexdigest(),
        }
        for domain, part_lists in [
            ("refrain/v1/run", PART_LISTS[:1]),
            ("refrain/v1/effect", PART_LISTS[:1]),
            ("refrain/v1/surrogate", PART_LISTS),
            ("refrain/v1/content", PART_LISTS[:1]),
        ]
        for parts in part_lists
    ],
    "runs": [
        {
            "project": project,
            "job": job,
            "key": text,
            "id": derived_id("refrain/v1/run", [project, job, text]),
        }
        for project, job, text in RUNS
    ],
    "effects": [
        {
            "project": project,
            "key": text,
            "version": version,
            "id": derived_id("refrain/v1/effect", [project, text, str(version)]),
        }
        for project, text, version in EFFECTS
    ],
    "surrogates": [{"parts": parts, "id": derived_id("refrain/v1/surrogate", parts)} for parts in SURROGATES],
    "keys": [{"parts": parts, "key": key(parts)} for parts in KEYS],
    "units": [
        {"json": text, "fields": fields, "fingerprint": fingerprint(text, fields)} for text, fields in UNITS
    ],
}

if __name__ == "__main__":
    sections = [
        f'"{name}": [\n  ' + ",\n  ".join(json.dumps(vector) for vector in vectors) + "\n]"
        for name, vectors in VECTORS.items()
    ]
    path = pathlib.Path(__file__).with_name("vectors.json")
    path.write_text("{" + ",\n".join(sections) + "}\n")
