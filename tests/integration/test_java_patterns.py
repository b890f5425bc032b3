"""Java's own regular expressions find what ours do, or ours are refused in one line."""

from __future__ import annotations

import subprocess
from itertools import product
from pathlib import Path
from typing import Final

from collector.sources.prometheus.java_patterns import PatternError, compiled
from demo.java import java_command

TEXTS: Final = (
    "kafka.server<type=Partition, name=UnderMinIsr, topic=jmxlake0standin, partition=7><>Value: 1",
    "kafka.cluster<type=partition, name=x, topic=__jmx.Lake-2, partition=73010><>value: 1",
    "aAbBcC09 _-.,;:+*?^$()[]{}|/\\\"'#!%&~`@<>=\t",
    "abcabc aa AA bb12 12 x.y x.y.z",
    "",
    "\u00e9\u00c9\u00aa\u00df\u00b5 \u00a0",
)
ATOMS: Final = (
    "a", ".", r"\w", r"\W", r"\d", r"\D", r"\s", r"\S", r"\h", r"\H", r"\v", r"\V", r"\R", r"\t",
    r"\.", r"\-", r"\<", r"\x41", r"\x{41}", r"\u0041", r"\0101", r"\cA", r"\Q.*\E", r"\Qab\E",
    "-", "]", "}", "é", "(?:ab)", "(b)", "(?<x1>c)", "(?>ab)", "(?=a)", "(?!a)", "(?<=a)",
    "(?<!a)",
    *(rf"\p{{{name}}}" for name in (
        "Alpha", "Digit", "Alnum", "Upper", "Lower", "Punct", "Graph", "Print", "Blank", "Cntrl",
        "XDigit", "Space", "ASCII", "L", "Lu", "Ll", "N", "Nd", "P", "S", "Sm", "IsAlphabetic",
        "IsLetter", "IsUppercase", "IsLowercase", "IsDigit", "IsPunctuation", "IsL", "gc=Lu", "LC",
        "InBasicLatin", "javaUpperCase", "javaLowerCase", "javaLetterOrDigit",
    )),
    r"\P{Alpha}", r"\P{L}", r"\pL", r"\PL", "[abc]", "[^abc]", "[a-c0-9]", "[]a]", "[^]a]", "[a-]",
    "[-a]", r"[\w.-]", r"[\d\s]", r"[^\w]", "[a-z&&[^bc]]", "[a-z&&[abc]&&[bcd]]", "[ab[xy]]",
    r"[\p{Alpha}&&[^a-m]]", r"[\Q.*\E]", r"[\x41-\x43]", r"[.$|(){}+*?]", "[a&b]", r"[\]\[]",
    "[^[]]", r"[\h]", r"[\P{L}]", r"[a-z&&\w]", "[a^b]", r"[\\]", r"[^\p{Lower}]", "[^a-z]",
)  # fmt: skip
REPEATED: Final = ("", "+", "*?", "++", "{2}", "{1,2}", "{2,}+", "?+")
WHOLE: Final = (
    r"kafka.(\w+)<type=(.+), name=(.+), topic=([^,]++), partition=(\d+)><>Value",
    "(?i)KAFKA.(SERVER|cluster)<TYPE=partition", "(?i:PARTITION), name=(x)", "a(?i)b|C",
    "(a(?i)B)c",
    "(?i)a(?-i)B", "(?s).", "(?is)A.B", "(?m)^a", "(?-s)a.", "(?u)a", "(?d)a$", "(?U)a", "(?iu)AB",
    "(?i)[^a]b", "(?i)[A-C]+", r"(?i)\p{Lower}{3}", r"(?i)\p{Lu}\p{Ll}", "(?i)[^A-Z ]",
    r"(?<type>\w+), name=(?<name>\w+).*\k<type>?", r"(a)\1", r"(a)(b)?\2", r"(\w)\1", r"(a)\11",
    r"^kafka", r"1$", r"\Akafka", r"1\z", r"1\Z", r"\bab", r"\Bb", "(a|b)+", "(a*)*b", "((a)|b)+",
    "a|b|", "()", "(?:)", "a{,2}", "a{", "{a", "*a", "a**", "a+*", "(a", "a)", "[a", "[z-a]", r"\y",
    r"\E", "(?P<x>a)", "(?#x)a", "(?<1>a)", "(?<a_b>a)", "(?<x>a)(?<x>b)", r"\k<no>",
    r"(?a)b", r"a\Q", r"\Qa", r"\Qab\E+", "[^a[b]]", "[^a&&[b]]", r"\p{Nope}", r"\p{", r"\pX",
    r"\x{110000}", r"(?<=a+)b", r"(?<=ab?)c", "#a", "a b", r"\ ", "(?x)a b", r"a\ b", r"\X", r"\G",
    r"\N{DIGIT ONE}",
    "[a-z&&]", "[&&a]", r"[a-\d]", r"[\b]", r"(?i)é", "", "|", r"\u00e9", "a{99999999999}",
)  # fmt: skip


def test_patterns_match_as_in_java() -> None:
    patterns = [*WHOLE, *map("".join, product(ATOMS, REPEATED))]
    patterns += [f"({one}+)(.)" for one in ATOMS] + [f"(?i){one}(b?)" for one in ATOMS]
    cases = list(product(patterns, TEXTS))
    given = "".join(f"{one.encode().hex()} {text.encode().hex()}\n" for one, text in cases)
    program = Path(__file__).with_name("java") / "JavaPatterns.java"
    ran = subprocess.run(
        java_command(str(program)), input=given, capture_output=True, text=True, check=True
    )
    answers = zip(cases, ran.stdout.splitlines(), strict=True)
    assert [
        (case, java, ours)
        for case, java in answers
        if (ours := matched(*case)) not in (java, "refused")
    ] == []


def matched(pattern: str, text: str) -> str:
    try:
        found = compiled(pattern).fullmatch(text)
    except PatternError:
        return "refused"
    if found is None:
        return "no"
    groups = ("-" if one is None else f"={one.encode().hex()}" for one in found.groups())
    return " ".join(["yes", *groups])
