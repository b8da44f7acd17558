"""The C++ that kernels of the CPU are put together from: its parts stand in one file, so that none may take another's name."""

import re
from collections import defaultdict
from pathlib import Path

import slangpy

PARTS = sorted((Path(slangpy.__file__).parent / "slang").glob("*_cpp.h"))
# types, aliases and templates of variables; functions may share a name where their parameters differ
NAMES = re.compile(
    r"^\s*(?:template\s*<[^;{]*?>\s*)?(?:static\s+)?(?:struct|class|enum|union|using|constexpr\s+\w+)\s+((?:_spy|Spy)\w+)\s*[{=:;]",
    re.MULTILINE,
)


def names(text: str) -> set[str]:
    return set(NAMES.findall(text))


def test_no_two_parts_define_one_name():
    owners = defaultdict(list)
    for part in PARTS:
        for name in names(part.read_text()):
            owners[name].append(part.name)
    assert len(owners) > 30
    assert {name: files for name, files in owners.items() if len(files) > 1} == {}


def test_names_are_found():
    text = "template <class T> constexpr bool _spy_a = 1;\nstruct SpyB {\n};\nusing SpyC = int;\n"
    assert names(text) == {"_spy_a", "SpyB", "SpyC"}
