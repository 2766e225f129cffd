"""Facts in a text: what a paraphrase destroys. Identifiers, numbers, paths, URLs, commands, error messages.

One pass of one alternation; every run of characters is consumed, and every repetition is bounded or
possessive, so the time is linear in the text whatever it holds. English and Chinese.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from health.compaction.reading.ledger_patterns import is_binding as is_binding
from health.compaction.reading.text import of_text


class FactKind(StrEnum):
    IDENTIFIER = "identifier"
    NUMBER = "number"  # with its unit or currency; dates and times too
    PATH = "path"
    URL = "url"  # e-mail addresses too
    COMMAND = "command"
    ERROR = "error"


class Fact(NamedTuple):
    """`text == source[start:end]`, in characters."""

    kind: FactKind
    text: str
    start: int
    end: int


_HANZI = "〇零一二两三四五六七八九十百千万亿"
_UNIT = (
    r"(?:(?:%|percent|‰|°[CF]?|[KMGTk]i?[Bb](?:ps|/s)?|bytes?|bits?|tokens?|ms|secs?|seconds?|s|minutes?|mins?|hours?"
    r"|hrs?|h|days?|weeks?|months?|years?|nights?|px|rem|km/h|km|cm|mm|miles?|mph|mi|m²|m|ft|feet|inch(?:es)?|kg|mg|g|lbs?"
    r"|oz|ml|lit(?:er|re)s?|l|kWh|kW|W|V|mA|[kMG]?Hz|fps|people|persons?|guests?|users?|items?|requests?|rows?|lines?"
    r"|times|[ap]m|[ap]\.m\.|AM|PM|USD|EUR|GBP|CNY|RMB|JPY|CHF|dollars?|euros?|pounds?|yuan|k|K|M|bn|B|million|billion"
    r"|thousand|st|nd|rd|th|o'clock|x)(?!\w)"
    r"|[万亿千百]?(?:元|块|美元|欧元|年|月|日|号|点半?|分钟|小时|秒|天|周|星期|岁|人|公里|米|厘米|公斤|斤|克"
    r"|升|度|折|倍|页|行|字))"
)
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_CLOCK = r"\d{1,2}:\d\d(?::\d\d)?(?:\.\d{1,9})?"
_LINE_OF = r"(?::\d{1,7}){0,2}"
_PART = r"\.?[\w@+~-]++(?:\.[\w@+~-]++)*+"  # of a path
_REST = r"[^\n]{1,240}"
_PROGRAM = (
    r"(?:sudo|git|npm|npx|yarn|pnpm|pip|uv|python\d?|pytest|make|docker|kubectl|helm|curl|wget|ssh|scp|cd|ls|cat|grep"
    r"|rg|sed|awk|find|rm|cp|mv|mkdir|chmod|tar|cargo|go|node|java|mvn|psql|sqlite3|systemctl|apt|brew|terraform|aws|gh)"
)
_FILE_ENDING = re.compile(
    r"(?:py|pyi|[jt]sx?|mjs|s?css|html?|md|rst|txt|jsonl?|ya?ml|toml|ini|cfg|conf|env|lock|xml|[ct]sv|sql|sh|bash|zsh|ps1"
    r"|bat|cc?|[ch]pp|h|rs|go|java|kt|rb|php|swift|lua|r|ipynb|log|pdf|docx?|xlsx?|pptx?|png|jpe?g|gif|svg|webp|mp[34]|wav"
    r"|zip|gz|tar|tgz|whl|exe|dll|so|db|sqlite|bak|tmp|vue|proto|tf|gradle)",
    re.IGNORECASE,
)
_DOMAIN = re.compile(r"(?:com|org|net|io|dev|ai|app|cn|de|uk|fr|eu|jp|edu|gov|co|me|info|xyz|cloud)", re.IGNORECASE)

# Gates such as (?=[A-Za-z_]) keep most alternatives from being tried; the last of each consumes the run.
_TOKEN = re.compile(
    rf"""
      (?>  # plain words, Chinese without numerals, escapes of JSON, marks and line ends are no facts
          \\(?:u[0-9a-fA-F]{{4}}[^\W_]*+)? |
          (?!(?:[Ee]rror|ERROR|[Ff]atal|FATAL|[Pp]anic|FAILED|Traceback|{_MONTH})\b)
             [A-Za-z][a-z]*+(?:['’-][a-z]++)*+(?![\w@/\\(]|[.:-][\w/\\])(?:[ ,;!?"]|\.(?![./]))*+
        | [^\x21-\x7e\n{_HANZI}错报异失€£¥￥]++ | [!-"%-*,:-?\[\]^{{-}}]++ | \n++[ \t]*+(?:\d{{1,3}}[.)](?=\s))?)++
    | (?=[A-Za-z_])(?:
          (?P<day>{_MONTH}[ ]\d{{1,2}}(?:st|nd|rd|th)?(?!\w)(?:,?[ ]\d{{4}}(?!\w))?)
        | (?P<url>(?:https?|ftp|wss?|file|git|ssh)://[^\s<>"'`（），。；、】」]{{1,2000}}(?<![.,;:!?)\]]))
        | (?P<email>[\w.+-]{{1,64}}+@[A-Za-z0-9-]{{1,63}}+(?:\.[A-Za-z0-9-]{{1,63}}){{1,6}})
        | (?P<error>\w++(?:\.\w++)*+(?:(?<=[a-z]Error)|(?<=[a-z]Exception))(?::{_REST})?
            | Traceback[ ]\(most[ ]recent[ ]call[ ]last\) | (?m:^)E[ ]{{2,8}}\S{_REST}
            | (?:[Ee]rror|ERROR|[Ff]atal|FATAL|[Pp]anic|FAILED)(?:\[\w{{1,12}}\])?(?::|(?<=[A-Z\]])[ ]){_REST})
        | (?P<path>[A-Za-z]:\\[^\s"'<>|*?`]{{1,250}}(?<![.,;:!)])
            | [\w.-]{{1,100}}+(?:(?:/{_PART}){{2,30}}+/?{_LINE_OF} | /(?![\w.@+~/-])
                | /(?:[\w@+~-]{{1,100}}+\.){{1,6}}[A-Za-z]\w{{0,9}}(?![\w/]){_LINE_OF}))
        | (?P<name>\w[\w-]*+(?:\.[\w-]++)*+(?:\(\)|:\d{{1,7}}(?!\w))?))
    | (?=[\d$€£¥￥+-])(?:
          (?P<shell>(?<![^\s])\$[ ]++[a-z./~][^\n]{{0,400}})
        | (?P<date>\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}(?:[T ]{_CLOCK}(?:Z|[+-]\d\d:?\d\d)?)?(?![\w-])
            | \d{{1,2}}[/.]\d{{1,2}}[/.]\d{{2,4}}(?![\w.]) | {_CLOCK}(?:[ ]?[ap]\.?m\b)?(?![\w:])
            | \d{{1,2}}(?:st|nd|rd|th)?[ ](?:of[ ])?{_MONTH}\b(?:,?[ ]\d{{4}}\b)?
            | \d{{4}}年(?:\d{{1,2}}月(?:\d{{1,2}}[日号])?)? | \d{{1,2}}月\d{{1,2}}[日号])
        | (?P<number>\+\d[\d ()-]{{7,18}}\d(?!\w)
            | (?:(?<!\w)[+-])?(?:[$€£¥￥][ ]?)?\d++(?:,\d{{3}}(?!\d))*+(?:\.\d++)?+
              (?:[ ]?[-–x×][ ]?\d++(?:\.\d++)?+)? (?:[ -]?{_UNIT}|(?!\w|[.-]\w)))
        | (?P<option>(?<!\w)--?[a-z][\w-]{{1,40}}+ | \$[A-Z][A-Z0-9_]{{1,60}}+)
        | (?P<numbered>\w[\w-]*+(?:\.[\w-]++)*+))
    | `(?:(?P<command>{_PROGRAM}[ ][^`\n]{{1,300}})|(?P<quoted>[^\s`]{{2,80}}+))`
    | (?=[~./])(?P<file>(?<![\w)])(?:~|\.{{1,2}})?(?:/{_PART}){{1,30}}+/?{_LINE_OF})
    | (?P<mark>\#\d{{1,12}}(?!\w) | @[A-Za-z][\w/-]{{1,60}}+)
    | (?=[{_HANZI}错报异失])(?:
          (?P<zh>百分之[{_HANZI}\d.]{{1,12}}
            | [{_HANZI}]{{1,12}}(?:元|块|美元|月[{_HANZI}]{{1,3}}[日号]|[月号年岁周天]|小时|分钟|公里|公斤))
        | (?P<fault>(?:错误|报错|异常|失败)(?:信息)?[:：]{_REST}) | .)
    | -++ | \.++ | /++ | ~++ | [+$#@]++
    """,
    re.VERBOSE | re.ASCII,
)
_BY_GROUP = {
    FactKind.NUMBER: "day date number zh",
    FactKind.URL: "url email",
    FactKind.ERROR: "error fault",
    FactKind.PATH: "path file",
    FactKind.COMMAND: "shell command",
    FactKind.IDENTIFIER: "option quoted mark",
}
_KINDS = {group: kind for kind, groups in _BY_GROUP.items() for group in groups.split()}
_NAMING = re.compile(r"\d.*[A-Za-z]|[A-Za-z].*\d|\w_\w|[a-z][A-Z]|\(\)$|^\d[\d.-]{5,}$|^\d+(?:\.\d+){2}", re.ASCII)
# Plain words between blanks and ordinary marks are no facts, but for "Error: …": one quick look at short messages.
_MAY_HOLD_FACTS = re.compile(
    r"[^a-z \n,;!?'\"](?:(?<=[^A-Z.:])|(?<=[A-Za-z][A-Z])|(?<=\.)(?=\S)|(?<=(?:rror|atal|anic):)|(?<=E)  )"
)
_LONGEST_NAME = 200  # what is longer is base64 or minified, nobody's name for a thing


def facts(text: str) -> list[Fact]:
    """The facts of a text, in order, without overlap. Linear in `text`, under 1 ms for 1,000 tokens."""
    if not _MAY_HOLD_FACTS.search(text):
        return []
    return list(_found(text))


@of_text
def _found(text: str) -> tuple[Fact, ...]:
    found: list[Fact] = []
    for match in _TOKEN.finditer(text):
        group = match.lastgroup
        if group is None:
            continue
        piece = match[group]
        kind = _KINDS.get(group) or _kind_of_name(piece)
        if kind and len(piece) > 1:  # a digit alone says little
            start = match.start(group)
            found.append(Fact(kind, piece, start, start + len(piece)))
    return tuple(found)


def _kind_of_name(name: str) -> FactKind | None:
    """What a bare word is: a file, a site, a name that somebody made up, or None: just a word."""
    if len(name) > _LONGEST_NAME or (name.isalpha() and (name.islower() or name.isupper())):
        return None
    stem, dot, ending = name.partition(":")[0].rpartition(".")
    if dot and not stem.isdecimal() and _FILE_ENDING.fullmatch(ending):
        return FactKind.PATH
    if dot and _DOMAIN.fullmatch(ending):
        return FactKind.URL
    return FactKind.IDENTIFIER if _NAMING.search(name) else None


def normal(fact: Fact) -> str:
    """The form in which two spellings of one fact are equal: "$1,299.00" and "$1299.00", "45 %" and "45%"."""
    text = " ".join(fact.text.split())
    if fact.kind is FactKind.NUMBER:
        return text.replace(",", "").replace(" ", "").replace("￥", "¥").casefold()
    if fact.kind is FactKind.URL:
        return text.rstrip("/").casefold()
    if fact.kind is FactKind.PATH:
        return text.removeprefix("./").rstrip("/")
    return text.removeprefix("$ ")
