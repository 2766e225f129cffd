"""Whether a sentence is said for all that comes or for one answer: by its small words, not by what it is about.

    > comments in German, all through this project          lasts
    > when I paste homework, hints only                     lasts
    > this time only the table, no text around it           is over with its answer

What lasts speaks of every case, of a time without an end, of what to do when something happens, of kinds of things, of
how somebody likes it, of what there is not, or leaves a thing alone or to somebody; it is said to the assistant, and of
what that makes. What points at one moment, tells a story, of others or of sums is over with its answer, or is a fact.
Each such sign counts once. One alone is in most chats no rule: "the school needs a form from each of us".
"""

from __future__ import annotations

import re
from typing import NamedTuple

from health.compaction.reading.text import of_text

# The weights are a regression's, fitted on 160 sentences and 24 chats and judged on 120 and 6 others; at `enough` one
# in five sentences of a chat is a rule. Stories, praise, requests and what points weigh more than it found, as these
# chats have few of them: docs/engine-measured.md.

_HAN = re.compile(r"[\u4e00-\u9fff]")


class Sign(NamedTuple):
    weight: float
    pattern: re.Pattern[str]


class Signs(NamedTuple):
    """Of a language. `points` is the sign against that is sure: one thing or one moment is meant. What is `lacked`
    binds as a fact does."""

    lasting: tuple[Sign, ...]
    once: tuple[Sign, ...]
    points: Sign
    lacked: re.Pattern[str]
    enough: float


def _any_of(told: str) -> str:
    """Expressions that stand apart by two blanks or in lines of their own."""
    return "|".join(filter(None, re.split(r"\s{2,}", told.strip())))


def _words(weight: float, told: str) -> Sign:
    return Sign(weight, re.compile(rf"\b(?:{_any_of(told)})(?![a-z])"))


def _phrases(weight: float, told: str) -> Sign:
    return Sign(weight, re.compile(_any_of(told)))


# Of sentences in lower case with straight apostrophes.
_EVERY_CASE = _words(
    1.8,
    r"""
    each  every  everywhere  any(?! (?:thoughts?|questions?|ideas?|news|luck|more|chance))  anything  anyone  anybody
    whoever  whatever  whenever  whichever  wherever  none of  nobody (?:but|except|may|should|is to)  no matter  in all
    all (?:the|of(?! (?:that|this|it|them)\b)|my|our|your|new|public|[a-z]{2,20}s)
    """,
)
_NO_END = _words(
    1.3,
    """
    from (?:now|here|then) on  from (?:now|today|tomorrow)  generally  in general  in future  going forward  by default
    (?:for|in|over|through|throughout|during) the (?:whole|entire|rest|future)  until (?:i|we|further)  as a rule
    throughout  any ?more  for good  as long as  at all times
    """,
)
_WHENEVER = _words(1.7, "(?:when|if|once|before|after) (?:i|we|you|somebody|someone)(?! forget)  unless  as soon as")
_UNWANTED = _phrases(
    1.4,
    r"(?:^|[,;:.(–-] ?|\b(?:and|but|so|please|then|want|for) )"
    r"(?:no|none|nothing|not|never|stop|without|don't|do not|avoid|skip) "
    r"(?!need\b|idea\b|problem|worries|doubt|bother|yet\b)[a-z']",
)
_LEFT = _words(
    1.4,
    """
    stays?  remains?  off[ -]limits  off the table  read[ -]only  frozen  private  secret  confidential  taboo  as is
    untouched  hands off  alone  leave [a-z' ]{2,30} (?:alone|be|out of)  (?:is|are) mine  ask me  check with me
    my (?:ok|okay|approval|consent|permission|go)  (?:ask|warn|tell|call)(?:s|ing)? me (?:first|before)
    """,
)
_LIMITED = _phrases(
    0.9, r"\bat (?:most|least)\b  \bmax(?:imum)?\b  \bonly (?:for|in|to|by|on|after|with|what)\b  [a-z] only(?=[,.;]|$)"
)
_LACKED = _words(
    1.0,
    """
    (?:is|are|there's|will be|won't be) no  ha(?:s|ve) no  only ha(?:s|ve)  the only  (?:i|we) (?:can't|cannot)
    (?:i'm|we're) never  nobody (?:else )?knows  only [a-z ]{2,30} knows?  allergic  diagnosed
    """,
)
_LIKED = _words(
    0.6,
    """
    (?:i|we)(?:'d)? (?:rather|prefer|want|like|need|hate|only|usually|always|never|read|work|care|say|call|write|use)
    (?:we|team|everybody|everyone) (?:do|does|uses?) it  confuses? me  nerves  works best  address  call me
    """,
)
_KINDS = _phrases(  # a plural at the head
    1.4,
    r"^(?:(?:and|also|btw|oh|please|my|our|your|new|all|small|short|long|public|private|commit|every|the) ){0,2}"
    r"(?!this|thanks|yes|always|its|is|was|has|does|looks|sounds|seems|works|us|plus|less|perhaps|besides|let's)"
    r"[a-z]{3,14}(?<![sui])s\b(?! (?:is|was|the|that|of|are)\b)",
)
_OF_WHAT_IS_MADE = _words(
    1.5,
    """
    answers?  repl(?:y|ies)  writ(?:e|ing|ten)  lists?  tables?  format  summar(?:y|ies)  drafts?  letters?  e?mails?
    messages?  texts?  words?  sentences?  paragraphs?  bullets?  headings?  spell(?:ing)?  english  german  french
    units?  metric  code  comments?  commits?  style  tone  steps?  lines?  footnotes?  quotes?  emojis?  exclamation
    examples?  functions?  tests?  quer(?:y|ies)  notes?  plans?  recipes?
    """,
)
_TO_YOU = _words(1.3, "you  your  u  pls  please")
_BEGINS_AS_ORDER = _phrases(
    1.5,
    r"^(?:(?:and|also|btw|oh|so|but|ok|please|just),? )*(?:use|keep|put|write|give|say|call|ask|show|list|leave|spell"
    r"|sign|mark|stick|split|skip|avoid|don't|do not|never|no|always|only|add|format|answer|reply|start|end|round|quote"
    r"|cite)\b",
)
_LONG = Sign(1.3, re.compile(r"(?s).{60}"))
_POINTS = _words(
    1.5,
    """
    this (?:time|one|draft|once)  that one  just (?:this )?once  one more time  yet  look at  above  pasted  attached
    the (?:first|second|third|fourth|last|next|previous|other) [a-z]{1,20}
    """,
)
_NOW = _words(
    0.3,
    """
    (?<!from )today  tonight  tomorrow  yesterday  this (?:week|morning|afternoon|evening)  now(?! on)  again  below
    at the moment  meantime  while you are
    """,
)
_STORY = _words(
    1.5,
    r"""
    (?:i|we|he|she|it|they|everybody|everyone|nobody)(?:'ve| have| has|'s)? (?:just )?(?:was|were|had|got|\w{2,20}ed)
    (?:i|we|he|she|it|they)(?:'ve| have| has|'s)? (?:just )?(?:did|came|went|said|told|found|thought|saw|made)
    never (?:heard|seen|knew|thought)
    """,
)
_IMPRESSED = _phrases(1.5, r"!  \?\?  \b(?:thanks|thank you|great|lovely|perfect|joking|relief|funny|nice|wow)\b")
_ASKS = _words(1.0, "(?:tell|show|give|paste|send) me(?! before| first)  (?:have|take) a look  (?:can|could) you")
_OF_OTHERS = _words(0.4, "he  she  they  his  her  their  him  them  it's  who")
_OF_SUMS = _phrases(0.8, r"[$€£]|\d{2}")

_ENGLISH = Signs(
    lasting=(
        _EVERY_CASE,
        _NO_END,
        _WHENEVER,
        _UNWANTED,
        _LEFT,
        _LIMITED,
        _LIKED,
        _KINDS,
        _OF_WHAT_IS_MADE,
        _TO_YOU,
        _BEGINS_AS_ORDER,
        _LONG,
    ),
    once=(_NOW, _STORY, _IMPRESSED, _ASKS, _OF_OTHERS, _OF_SUMS),
    points=_POINTS,
    lacked=_LACKED.pattern,
    enough=3.1,
)
_CHINESE = Signs(
    lasting=(
        _phrases(  # every case
            2.1,
            """
            凡  每(?:[次个道篇条天周月改写做回]|一)  所有  任何  不管  无论  全部  一律  一概  通通  统统  统一
            (?<![成首])都(?!怪|快|好|不错|佩服|说)  [谁哪什].{0,4}都
            """,
        ),
        _phrases(
            1.1, "往后  今后  以后(?!再)  从(?:现在|今|这)[天儿]?[起往开]  后面  从头到尾  整个  始终  永远  长期"
        ),
        _phrases(1.7, "除非  只要  直到  的时候  [之以]前[先得]  前先?(?:问|跟|让|给)  要是  如果  碰到  遇到"),
        _phrases(
            2.5,
            """
            (?<![先就])(?:别|不要|不准|不许|不得|禁止|不用|勿)(?!了|的)
            不(?:提|写|碰|加|出现|对外|公开|能)
            """,
        ),
        _phrases(
            0.4,
            """
            [先再](?:问|跟|找|过)我  归(?:[我你他她]|.{1,6}管)  照旧  保密  别动  我自己来  瞒  我点头  我同意  保留
            """,
        ),
        _phrases(
            2.0,
            """
            习惯  叫我  宁[可愿]  按.{1,20}(?:来|排|写|算|格式)  照.{1,8}来  控制在  至少  最多  只(?![是好剩])  免谈
            用[^，。]{1,8}，[^，。]{1,8}用  用.{1,6}写  写中文
            """,
        ),
        _phrases(  # what is made
            0.8,
            """
            写  回[复答我]  列  表  格式  文字  语气  称呼  句  单位  标[出注题]  [段行字]  代码  命令  注释  公告  文案
            邮件  总结  例子  步骤  英文  中文  翻译  测试  接口  菜谱  清单
            """,
        ),
        _phrases(1.1, "你  请  哈$  给我"),
    ),
    once=(
        _phrases(0.3, "今天  今晚  明天  昨天  昨晚  下面  现在  再试  马上  一遍"),
        _phrases(1.0, "一下  帮我  麻烦  给我(?:看|讲|说|查)  告诉我  看看  试试  拟"),
        _phrases(1.5, "[!！]  佩服  不错  谢谢  辛苦  从来没  吓  怪我  了[。！]?$  去年  上次  以前"),
        _phrases(0.7, "[他她]  们"),
        _phrases(1.1, r"\d{2}  [元块万]"),
    ),
    points=_phrases(
        1.5,
        "这次  这回  刚才  刚刚  上面  [那这][段份张]  第.{1,2}[张个段条章]  先别  千万别告诉  必须(?:承认|说|给你)",
    ),
    lacked=re.compile(_any_of("没有(?![吗过]|问题|关系|意见|用)  [^受]不了(?!解)  过敏")),
    enough=2.2,
)


@of_text
def lasts(sentence: str) -> bool:
    """Whether it is said for all that comes: a rule, though it may have no word that orders or forbids."""
    low, signs = _read(sentence)
    told = _weight(signs.lasting, low)
    return told > signs.enough and told - _weight((*signs.once, signs.points), low) > signs.enough


@of_text
def tells_of_a_lack(sentence: str) -> bool:
    """Whether it tells what there is not, or what somebody does not bear: "the server has no internet"."""
    low, signs = _read(sentence)
    return signs.lacked.search(low) is not None and not _weight((*signs.once, signs.points), low)


@of_text
def is_for_once(sentence: str) -> bool:
    """Whether it points at one thing or one moment: "don't bother with the third one", 这次就别写了."""
    low, signs = _read(sentence)
    return signs.points.pattern.search(low) is not None


def _weight(signs: tuple[Sign, ...], low: str) -> float:
    return sum(sign.weight for sign in signs if sign.pattern.search(low))


def _read(sentence: str) -> tuple[str, Signs]:
    low = sentence.lower().replace("’", "'")
    return low, _CHINESE if not low.isascii() and _HAN.search(low) else _ENGLISH
