"""The data of a page, read back from its HTML."""

import json
import re
from base64 import b64decode
from gzip import decompress
from typing import Any

HOSTILE = "</script><img src=x onerror=boom()>\"'`${boom()}<!--\x1b[2J\x07\u202e\u2028\u0000&amp;"
"""A text that leaves its place where it is not escaped."""


def scripts(html: str) -> dict[str, Any]:
    """Return the JSON of each data script, by its id."""
    blocks = re.findall(r'<script type="application/octet-stream" id="([\w-]+)">([^<]*)<', html)
    return {name: json.loads(decompress(b64decode(text))) for name, text in blocks}


def details(html: str, module: int = 0) -> list[Any]:
    """Return the details of all instructions of a module."""
    data = scripts(html)
    count = len(data["structure"]["modules"][module]["chunks"])
    return [each for k in range(count) for each in data[f"details-{module}-{k}"]]


def hostile_module_text() -> str:
    """Return a module whose strings are hostile; names of HLO have no such characters."""
    text = HOSTILE.replace("\x00", "").replace("\\", "").replace('"', '\\"')
    text = text.replace("\u2028", "").replace("\x07", "\\007")
    return f"""HloModule m
ENTRY e {{
  p = f32[3,4] parameter(0), metadata={{op_name="{text}" source_file="{text}" source_line=1}}
  q = f32[3,4] custom-call(p), custom_call_target="{text}", metadata={{op_name="{text}"}}
  ROOT r = f32[4,3] transpose(q), dimensions={{1,0}}, metadata={{op_name="{text}"}}
}}
"""
