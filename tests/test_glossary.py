"""The glossary defines every term of the headings, is sorted, and is linked from the pages.

A word of a heading is in one of three lists: ordinary English, the field's words, or the terms of
`docs/glossary.md`. A new word in a heading fails the test until it is added to one of the lists.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_docs import ROOT, prose

GLOSSARY = ROOT / "docs" / "glossary.md"
GENERATED = [
    ROOT / "docs" / "coverage.md",
    ROOT / "docs" / "found.md",
    ROOT / "docs" / "laws.md",
    ROOT / "docs" / "value_laws.md",
]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
ENTRY = re.compile(r'^\* <a id="(?P<anchor>[\w-]+)"></a>\*\*(?P<term>[\w -]+)\*\*: \S.*\.$')
LINK = re.compile(r"\((?:[\w/.]*glossary\.md)?#(?P<anchor>[\w-]+)\)")


def words(text: str) -> set[str]:
    return {word.lower() for word in re.findall(r"\w[\w.-]*\w|\w", text)}


ENGLISH = words("""
    a accuracy add all an and any are as assume at beside best between by change checked command
    compiled conditions release
    copy compared completion constant continue contribute decision depth die difference
    documentation drawn each errors every exactly example exchanged executing fault faults find for
    four
    from generated get glossary go growth install know
    guarantee how in interpreted interrupted is it kind known large later level limit limits line
    many much
    method move needed next word words not number numbering of on once one or other out own part
    place proved
    quality question reason repair result run search several specified speed start supported
    term that the through to together total trust two use value was what where with without your
    dependencies deprecation experts operating public releases stability systems version versions
""")
FIELD = words("""
    access bank bounds buffer byte compiler conflict derivation dump equivalence file hlo jax jitted
    protobuf text attention causal cluster execution folder machine model slider worker
    column dynamic explorer pallas perfetto scalar size
    algebra coordinate cute linear order swizzle triton
    analysis architecture attribute cache call class command comparison completion composition
    compute constraint consumer cost custom dimension domain evaluation expression floordiv formula
    function fusion gather gpu grid hlo-indexing host indices instruction interface isl json latex
    layout load matmul maxima memory minima miss mlir mod module mutated non-affine notation
    notebook numpy
    op opcode operand operations parameter pickle print producer product program proof python queue
    report
    resident residue roofline runtime shape shardy shell simplification simplified simplifier store
    pass passes sum sympy test thread tile tpu validation variable xla matplotlib picture
""")


DISTINCTIVE = (
    *("atom", "budget", "certificate", "element rule", "epilogue", "exact piece", "grade", "hero"),
    *("loop nest", "map set", "multiplicity", "oracle", "poke", "reference kernel", "rendezvous"),
    *("staging", "symbolic size", "verdict", "walk", "witness"),
)
"""Terms that a reader cannot take for ordinary English: every page that uses one links it."""


def entries() -> Iterator[re.Match[str]]:
    for line in GLOSSARY.read_text().splitlines():
        if line.startswith("*"):
            match = ENTRY.match(line)
            assert match is not None, f"not of the form of an entry: {line}"
            yield match


ENTRIES = list(entries())
TERMS = [entry["term"] for entry in ENTRIES]
ANCHORS = {entry["anchor"] for entry in ENTRIES}
WORDS_FOR_BYTES = {
    "requested": r"bytes requested|requested bytes|`requested`|bytes_requested|  requested  ",
    "distinct": r"distinct bytes|\d distinct\b",
    "needed": r"`needed`",
    "touched": r"bytes_touched|\btouched=|/ touched",
    "moved": r"bytes moved|bytes that \w+( \w+)? moves?\b",
    "read-again": r"bytes_again|bytes read again",
    "transferred": r"bytes_transferred|  transferred  ",
    "reuse": r"`reuse`|, reuse \d|  reuse  ",
    "narrowed-first": r"narrowed first",
}
"""The anchors of the table of words for bytes, and how pages use each of them."""


def headings(page: Path) -> list[str]:
    """Headings without the code in them; of generated pages not the names of their entries."""
    level = "##?" if page in GENERATED else "#+"
    lines = re.findall(rf"^{level} (.*)$", prose(page), re.MULTILINE)
    return [re.sub(r"`[^`]*`", "", line) for line in lines]


def test_entries_are_sorted_and_linkable() -> None:
    assert sorted(TERMS, key=str.casefold) == TERMS
    assert [entry["anchor"] for entry in ENTRIES] == [term.replace(" ", "-") for term in TERMS]
    assert len(ANCHORS) == len(ENTRIES)


def stems(word: str) -> set[str]:
    """The word, and the words that it may be a plural or a participle of."""
    endings = [
        ("s", ""),
        ("es", ""),
        ("ies", "y"),
        ("ed", ""),
        ("d", ""),
        ("ing", ""),
        ("ing", "e"),
    ]
    return {word} | {word.removesuffix(e) + new for e, new in endings if word.endswith(e)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_words_of_headings_are_ordinary_or_in_the_glossary(page: Path) -> None:
    defined = {stem for term in TERMS for word in words(term) for stem in stems(word)}
    known = ENGLISH | FIELD | defined
    unknown = {word for text in headings(page) for word in words(text) if not stems(word) & known}
    assert not unknown, "define them in docs/glossary.md, or add ordinary words to the lists here"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_entries(page: Path) -> None:
    to_glossary = LINK if page == GLOSSARY else re.compile(r"glossary\.md#(?P<anchor>[\w-]+)\)")
    anchors = {match["anchor"] for match in to_glossary.finditer(page.read_text())}
    assert anchors <= ANCHORS | WORDS_FOR_BYTES.keys()


def test_each_term_is_linked_from_a_page() -> None:
    """A term that no page links is not used, or not linked where it is used."""
    texts = [page.read_text() for page in PAGES if page != GLOSSARY]
    linked = {a for text in texts for a in re.findall(r"glossary\.md#([\w-]+)\)", text)}
    assert ANCHORS - linked == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_links_the_terms_that_only_the_glossary_explains(page: Path) -> None:
    if page in (GLOSSARY, *GENERATED):
        return
    text = re.sub(r"`[^`]*`", "", prose(page))
    used = [term for term in DISTINCTIVE if re.search(rf"\b{term}s?\b", text, re.IGNORECASE)]
    missing = [t for t in used if f"glossary.md#{t.replace(' ', '-')})" not in page.read_text()]
    assert not missing, "link the terms where the page uses them first"


def test_ordinary_words_are_not_in_the_glossary() -> None:
    assert not {term for term in TERMS if term in ENGLISH | FIELD}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_links_the_terms_of_its_headings(page: Path) -> None:
    if page in (GLOSSARY, *GENERATED):
        return
    text = page.read_text()
    used = {stem for heading in headings(page) for word in words(heading) for stem in stems(word)}
    phrases = " ".join(headings(page)).lower()
    terms = [t for t in TERMS if (t in phrases if " " in t else t in used)]
    missing = [t for t in terms if f"glossary.md#{t.replace(' ', '-')})" not in text]
    assert not missing, "link the terms where the page uses them first"


def test_the_table_has_each_word_for_bytes() -> None:
    table = GLOSSARY.read_text().partition("## Words for bytes")[2].partition("\n## ")[0]
    assert set(re.findall(r'<a id="([\w-]+)">', table)) == set(WORDS_FOR_BYTES)
    for word, use in WORDS_FOR_BYTES.items():
        assert re.search(rf'<a id="{word}"></a>{word.replace("-", " ")} \|', table)
        assert any(re.search(use, page.read_text()) for page in PAGES), f"no page uses {word}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_links_its_first_words_for_bytes(page: Path) -> None:
    """In prose the first use is a link; a word in examples only is linked somewhere."""
    if page in (GLOSSARY, *GENERATED):
        return
    text, plain = page.read_text(), prose(page)
    for word, use in WORDS_FOR_BYTES.items():
        if not re.search(use, text):
            continue
        link = f"glossary.md#{word})"
        assert link in text, f"link `{word}` to the table where the page uses it first"
        first = re.search(use, plain)
        if first is not None:
            line = plain[: first.end()].count("\n")
            linked = plain[: plain.index(link)].count("\n")
            assert linked <= line, f"`{word}` is used before its link"
