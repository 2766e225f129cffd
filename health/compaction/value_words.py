"""Closed classes of English and Chinese words by which a value, a change, an addition and an end are told.

No repetition in them is unbounded. The words say nothing about what a conversation is about: that it tells itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum

from health.compaction.text import CJK


class Sort(IntEnum):
    """What a value is; where a sentence has several, the first of these is what it states."""

    TIME = 1
    DATE = 2
    DAY = 3
    AMOUNT = 4
    NAME = 5
    CHOICE = 6


_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}"
SORTS: Mapping[Sort, re.Pattern[str]] = {
    Sort.TIME: re.compile(
        r"(?<![\d:])\d{1,2}:\d\d(?:\s?[ap]m)?(?![\d:])|\b\d{1,2}\s?[ap]m\b|\b(?:noon|midnight)\b"
        r"|[\d一二三四五六七八九十]{1,3}点(?:半|\d\d分?)?",
        re.I,
    ),
    Sort.DATE: re.compile(
        rf"\b{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?\b|\b\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}\b"
        rf"|\b\d{{4}}-\d\d-\d\d\b|\d{{1,2}}月\d{{1,2}}[日号]?",
        re.I,
    ),
    Sort.DAY: re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|(?:周|星期|礼拜)[一二三四五六日天]", re.I),
    Sort.AMOUNT: re.compile(r"(?<![A-Za-z0-9_.,-])[$€£¥]?\d[\d,.]*(?:k|m|%)?(?![A-Za-z0-9_-])"),
}
_SURNAMES = (
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾萧田董袁潘于蒋蔡余杜叶程苏魏吕丁任沈"
    "姚卢姜崔钟谭陆汪范金石廖贾夏韦方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严武戴莫孔汤"
)
ZH_NAME = re.compile(rf"[{_SURNAMES}][\u4e00-\u9fff]{{1,2}}")
LATIN_NAME = re.compile(r"(?<![A-Za-z0-9_'’])[A-ZÀ-Þ][A-Za-zÀ-ÿ0-9_'’-]*")
# A sentence that opens with one of these opens with no name.
NO_NAME = ("ly", "ing", "'s", "’s", "n't", "'ll", "'re", "'m", "'ve")
# Words that stand in lower case somewhere are no names.
LOWER = re.compile(r"(?<![A-Za-z0-9_'’])[a-zà-ÿ][a-zà-ÿ'’-]+")
CODE = re.compile(r"[`{}<>=\\|]|\w\(|\w_\w|\w/\w|^\s*[/#$]|\w\.[a-z]{2,4}\b|--\w")
WORD = re.compile(rf"[A-Za-zÀ-ÿ][\w'’-]*|[{CJK}]+")
# Closed classes of words. What is said besides something replaces nothing.
ADDS = re.compile(
    r"\b(?:also|too|as well|besides|another|second|second(?:ary)?|third|plus|additional(?:ly)?|in addition"
    r"|on top of|extra|separate(?:ly)?"
    r"|other|others|both|either|else|still|even|each|every other|helps?|backup|fallback|comparison"
    r"|compare[ds]?|last (?:year|time|month)"
    r"|only (?:on|in|at|for|when|if)|on weekends|if (?:nobody|she|he|they|not)|their)\b"
    r"|[也还另]|除了|此外|同时|额外|单独|各自|分别|去年|上次|备用|周末",
    re.I,
)
ENDS = re.compile(
    r"(?<!-)\b(?:off|skip(?:ped|ping)?|cancel+(?:ed|s|ing)?|called off|call off|no longer|(?:not|n't"
    r"|never) .{0,40}\b(?:any ?more|any longer|after all)|any ?more|drop(?:ped)?"
    r"|(?<!i )forget|scrap(?:ped)?|ignore|scratch|abandon(?:ed)?|withdrawn?|stop(?:ped)?|won't happen"
    r"|falls? through|fell through|no need|not needed|without)\b"
    r"|取消|不用|不再|不需要|作废|算了|撤|别再|没有了|不办|不要了|停",
    re.I,
)
CHANGES = re.compile(
    r"\b(?:now|instead|rather|after all|actually|no longer|any ?more|chang(?:e[ds]?|ing)|switch(?:ed|ing"
    r"|es)?|mov(?:e[ds]?|ing)|replac(?:e[ds]?|ing)|swap(?:ped)?"
    r"|confus(?:ed?|ing)|correct(?:ion|ed)?|wrong|mistake|misread|mixed|sorry|better|prefer|again|back"
    r"|not|turn(?:s|ed) out|from (?:now|here|today|next)|decided|overruled|undo"
    r"|make (?:it|that)|wait|new|latest|updated?|revised)\b"
    r"|改|换|更|还是|不是|不对|错|现在|不要|别|而是|挪|延|调|迁|恢复|回到|弄混",
    re.I,
)
COMMON = frozenset(
    """
    degree degrees dollar dollars percent metres meters miles pounds
    able add agree agreed allow already always ask asked away back bad become begin belong belongs best better big
    book booked bring call came can care change check clear come comes could day days decide decided deliver
    different done easy end enough euro euros every everybody everyone everything fact feel few figure finally find
    fine first forget found free full gave get gets give given go goes going good got great half happen happens hard
    have hear heard help here hold hope hour hours idea just keep keeps kind know last late later leave leaves left
    less let like little long look looks lot made make makes many matter maybe mean meant meet mind month months
    move moved moves much must need needs never new next nice nothing number offer once open order others
    own pay people person pick picked place plan please point possible problem put ready real really remember right
    run runs said same say says see send set should show since small something sometimes soon sort sorry stay stays
    start still stop sure take takes talk tell thank thanks thing things think thought time times today together
    told tomorrow took true try turn turned turns two update use used uses usual wait want wanted wants way week
    weeks well went will wish with word work works world would write wrong year years yes yesterday yet one three
    four five six seven eight nine ten hundred thousand actually again almost along also although another anything
    around because before behind below between both bit case cost costs course deal else ever exactly expect far fix
    follow forward front however instead inside kept least likely live main mention middle most near noted often
    okay old only outside part past perhaps quick quite rather second several short side simple simply spend stuff
    such suppose though through tonight toward under until whole without worth
    """.split()  # noqa: SIM905 (a list of words reads best as text)
)
ZH_FUNCTION = frozenset("的了是在我你他她它们这那就都也还和与把被给从吧吗呢啊呀哦嗯不没很再又")
ZH_COMMON = frozenset(
    "的了是在我你他她它们这那就都也还和与把被给到从为以要会能可吧吗呢啊呀哦嗯不没有很最再又才只先后上下中"
    "里外个些点元块年月日号时分用做来去说看想让请问好谢应该知道"
)


POINTS_BACK = re.compile(
    rf"{CHANGES.pattern}|\b(?:it's|make it|that's|no|oh|hm+|i meant|thinking|then)\b|吧$|吧[。！]", re.I
)
OF_SOMETHING = re.compile(r"\b(?:for|of|about|on) (?:the|my|our|your|[A-Z])")
DIRECTS = re.compile(
    r"^(?:please|always|just|write|use|make|set|put|keep|give|send|answer|reply|speak|call|paint|plan"
    r"|format|name|store|show|print|tell|take)\b"
    r"|\b(?:should|shall|must|has to|have to|needs? to|will be|wants?|would like|i'd like|i like|i prefer"
    r"|i'd (?:love|rather)|always|never|please"
    r"|let's|as|in|for|belongs?)\b|请|用|定|按|要|想|得|应|就|选|写|叫",
    re.I,
)
PART = re.compile(r"([a-z][\w-]+) (?:of|for) (?:(?:the|my|our|your|this|that) )?([A-Za-z][\w-]+)\b")
# What a thing has: a value of it is the thing's.
ATTRIBUTES = frozenset(
    """
    address budget colour color date deadline price number total amount limit maximum minimum name time day size
    length format language place venue contact owner person port version room password phone title theme
    """.split()  # noqa: SIM905 (a list of words reads best as text)
)
# A further wish for something is no change of the one before.
ORDERS = re.compile(
    r"\b(?:get|order|have|like|want|need|me|add|us)(?: to (?:get|order|have|add))? (?:a|an|one|two|three"
    r"|some|another|\d)\b",
    re.I,
)
REQUESTS = re.compile(
    r"(?:\w+,? )?(?:could|can|would|will|shall|may) (?:you|we|i|it|the|they|he|she|this|that|my|our)\b"
    r"|能不能|可以|可否",
    re.I,
)
# What binds until it is taken back, and how that is said.
BINDS = re.compile(
    r"\b(?:never|always|must|shall|do not|don't|under no)\b|不要|必须|总是|一律|禁止|绝不|千万|务必", re.I
)
REVOKES = re.compile(
    r"\b(?:now|instead|rather than|after all|no longer|any ?more|chang(?:e[ds]?|ing)|switch(?:ed|ing)?"
    r"|replac(?:e[ds]?|ing)|swap"
    r"|again|back to|from (?:now|today) on|forget|scrap|drop|ignore|overruled|undo|easier)\b"
    r"|改|换|不再|不用|取消|现在|恢复|还是",
    re.I,
)
