"""The plain forms of statements, corrections and withdrawals that `subjects` reads. For lower-case text.

Every repetition is bounded. Groups: `about` and `value` of a statement, `update` where the form itself tells of a
change, `old` what is no longer so, `what` is withdrawn.
"""

from __future__ import annotations

import re

from health.compaction.reading.text import CJK, one_of

CHOICES = {
    "indentation": "tab tabs space spaces 制表符 空格",
    "package-manager": "npm pnpm yarn bun",
    "database": "postgres postgresql mysql sqlite mariadb mongodb",
    "test-runner": "pytest unittest jest vitest mocha",
    "units": "metric imperial celsius fahrenheit",
    "spelling": "british american",
    "language": (
        "english french german spanish italian portuguese chinese japanese korean russian 中文 英文 英语 法语 德语 日语"
    ),
}
CHOICE_OF = {choice: name for name, choices in CHOICES.items() for choice in choices.split()}
# Things that have one value at a time, whatever the value is.
SINGLE = frozenset(CHOICES) | frozenset(
    """
    name address password phone email title venue place location city colour color version branch port host owner
    author favourite favorite theme font username nickname 名字 地址 密码 电话 地点 颜色 语言
    """.split()  # noqa: SIM905 (a list of words reads best as text)
)
CHOICE = re.compile(
    rf"\b(?:{'|'.join(choice for choice in CHOICE_OF if choice.isascii())})\b"
    rf"|{'|'.join(choice for choice in CHOICE_OF if not choice.isascii())}"
)
CHOOSING = re.compile(
    r"\b(?:us(?:e|ing)|reply|answer|respond|write|speak|talk|switch to|go(?:ing)? with|indent|prefer|stick (?:to|with)"
    r"|run)\b|用"
)
IN_LANGUAGE = re.compile(r"\b(?:in|speak|use|to)\s$|用$")
NOT = re.compile(r"\b(?:never|not|don't|avoid|no longer|stop)\b|不要|别|不再|禁止")
SCOPE = re.compile(r"\b(?:for|in|on|when|inside|with) (?:the |my |our )?([^,.;]{1,40})")

# In a chat of several: "Petra: …". What she calls hers is not another's.
SPEAKER = re.compile(
    r"(?:\[[^\]\n]{1,30}\]\s*)?(?!correction|sorry|update|note|actually|wait|no\b|ok\b|更正|不对)"
    r"(?P<who>[^\W\d_][\w .'-]{0,24})[:：]\s*"
)
HERS = re.compile(r"(?:my|our|i|we|we're|i'm)\b|我")
# Days are no things that have a value.
WHEN = re.compile(r"(?:today|tomorrow|yesterday|tonight)\b|[上下这本]周|今|昨|明天|后天|前天|周末")

_LEAD = (
    r"(?P<lead>(?:(?:actually|ok|okay|so|well|please|sorry|correction|update|note|by the way|btw|and|also|wait|oh|no"
    r"|now|change of plans?|then|from now on)\b[,:.!]?\s*){0,4})"
)
LED = re.compile(_LEAD + r"(?<=.)")
_DET = r"(?:(?:the|my|our|your|his|her|their|its|this|that)\s+)?"
_NAME = r"(?P<about>[\w'-]{1,40}+(?:\s[\w'-]{1,40}+){0,6}?)"
_MOVES = "move|change|switch|switche|shift|drop|postpone|reschedule|increase|raise|lower|reduce"
_MOVED = rf"(?:has (?:been )?|was |got |will )?(?:{_MOVES})[sd]? to"
STATED = re.compile(
    rf"{_LEAD}{_DET}{_NAME}(?:\s+(?P<update>(?:is|are) now|now (?:is|are)|{_MOVED}|becomes?|became|(?:goes|went) (?:up"
    r"|down) to)|\s+(?:is|are|will be|should be|must be|stays|equals)|\s?=)\s+(?P<value>.+)"
)
LABELLED = re.compile(
    rf"{_LEAD}{_DET}{_NAME}(?P<update>)\s?[:：]\s?(?P<value>[$€£¥]?\d[\w.,:%/ -]{{0,15}}"
    r"|[a-z]{3,6}day|周.|星期.)[.。]?$"
)
SET = re.compile(
    rf"{_LEAD}(?:let's |we should |we'll |i'll |i want to |we need to )?(?P<update>make|set|change|move|raise|lower"
    rf"|increase|reduce|cut|update|bump|push|postpone|reschedule|shift|switch)\s+{_DET}{_NAME}(?:\s+(?:back|up|down))?"
    r"\s+(?:(?:to|at|as|into)\s+|=\s?|(?=[$€£¥\d]))(?P<value>.+)"
)
_ZH_LEAD = (
    r"(?P<lead>(?:不对|更正|对了|另外|那么?|好的?)?[，,]?)(?:把|将)?(?:我们|你们|他们|我|你|他|她|这个|那个|这次)?的?"
)
ZH_STATED = re.compile(
    rf"{_ZH_LEAD}(?P<about>[{CJK}]{{1,10}}?)(?:(?P<update>(?:现在)?(?:改成|改为|改到|换成|换到|调整为|调到|提高到|降低到|降到|推迟到"
    r"|提前到|变成|挪到)|现在是)|定在|定为|设为|是(?![否说不])|为(?![了什此止])|在(?=周|星期|[明后今]天|[上下中]午|[早晚]上|[\d一二三四五六七八九十]{1,4}[点月号日:]))"
    r"(?P<value>.+)"
)
# The signs in a sentence; each form cannot do without one of its set: one look instead of many.
SIGN = re.compile(
    rf"[a-z]+|[=成为到是在消]|[:：](?=\s?(?:[$€£¥]?\d|[a-z]{{3,6}}day|周|星期))"
    rf"|{'|'.join(choice for choice in CHOICE_OF if not choice.isascii())}"
)
COLON, ZH_BEING = frozenset(":："), frozenset("成为到是在消")
SETTING = frozenset(
    """
    make set change move raise lower increase reduce cut update bump push postpone reschedule shift switch
    """.split()  # noqa: SIM905 (a list of words reads best as text)
)
BEING = frozenset({"=", "is", "are", "be", "become", "becomes", "became", "equals", "stays", "goes", "went"})
BEING |= {move + ending for move in _MOVES.split("|") for ending in ("", "s", "d")}
ZH_ENDED = re.compile(rf"{_ZH_LEAD}(?P<about>[{CJK}]{{1,10}}?)(?P<update>已经?|被)?(?P<value>取消了?)[。！!]?$")
# What is said to be so has no other value left.
ENDED = frozenset({"cancelled", "canceled", "off", "called off", "over", "取消", "取消了"})
CORRECTING = re.compile(r"actually|correction|update|change of plan|now|wait|sorry|from now on|不对|更正")
NOBODY = frozenset(
    """
    it this that there he she they i we you what who which everything something nothing here one all sorry correction
    update note 这 那 它 他 她 都 更正
    """.split()  # noqa: SIM905 (a list of words reads best as text)
)

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
TYPES = {
    "day": re.compile(
        rf"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|tomorrow|today|tonight|{_MONTH} \d{{1,2}}\w*"
        rf"|\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}|\d{{4}}-\d\d?-\d\d?)"
        r"|周[一二三四五六日天]|星期.|明天|后天|(?<!\d)\d+(?:月\d+[日号]?|[日号])"
    ),
    "time": re.compile(
        r"\b(?:\d{1,2}(?::\d\d(?: ?[ap]m)?| ?[ap]m\b)|noon\b|midnight\b)|[\d一二两三四五六七八九十]{1,3}点半?"
    ),
    "number": re.compile(r"\d[\d,.]*|[一二两三四五六七八九十百千万]{1,8}(?=[元块个人天年月])"),
}

# A value without any of these names no day, time or number.
TYPED = re.compile(r"[\d一二两三四五六七八九十百千万周期天]|day\b|to(?:morrow|night)|noon|midnight")

# A sentence without any of these corrects and withdraws nothing: each expression below has one of them.
CHANGING = re.compile(
    one_of(
        (
            *("not ", "no longer", "instead of", "rather than", "forget", "ignore", "disregard", "scratch", "scrap"),
            *("drop", "never ?mind", "any ?more", "sorry", "correction", "i was wrong", "my mistake", "misspoke"),
            *("不", "忘", "忽略", "管", "取消", "撤回", "作废", "更正", "说错"),
        )
    )
)
CORRECTED = re.compile(
    r"(?:sorry|correction|i was wrong|my mistake|scratch that|i misspoke|更正|说错了|不对)\b"
    r"|.{1,200}\bnot what i (?:said|wrote|told)\b|.{1,100}(?:不是我(?:之前|刚才)说的|之前说错了)"
)
STALE = (
    re.compile(r"\bnot (?P<old>[\w$€£:. -]{1,40}?),? but\b"),
    re.compile(r"\b(?:instead of|rather than|no longer)\s+(?P<old>[^,.;]{1,40})"),
    re.compile(r",\s*not (?P<old>[^,;]{1,40}?)[.!]?$"),
    re.compile(r"不是(?P<old>[^，,。]{1,15}?)[，,]?(?:而)?是"),
    re.compile(r"不(?:再)?用(?P<old>[^，,。]{1,15}?)[，,](?:改)?用"),
    re.compile(r"[，,]?(?:不(?:再|要)?用|而不是)(?P<old>[^，,。]{1,15}?)[。！!]?$"),
)
_RULE = r"(?:rule|requirement|constraint|instruction|limit|preference|request|idea|plan|point|thing)s?"
WITHDRAWN = (
    re.compile(
        rf"{_LEAD}(?:you can |let's )?(?:forget|ignore|disregard|scratch|never ?mind|scrap|drop)\s+(?:about|what i"
        r" (?:said|told you|wrote|asked)(?: earlier| before)?(?: about| on| for)?|(?:my|the|that)(?: \w+)?"
        rf" {_RULE}(?: about| on| for| that| of| to)?)\s+(?P<what>[^,;]{{2,80}}?)[.!]*$"
    ),
    re.compile(
        rf"{_LEAD}{_DET}(?P<what>[\w' -]{{2,60}}?)\s+(?:no longer (?:appl\w+|matters?|needed|required|holds?|counts?)"
        r"|(?:is|are) no longer (?:needed|required|valid|relevant|necessary)"
        r"|(?:doesn't|don't) (?:apply|matter) any ?more)"
    ),
    re.compile(
        r"(?:请|那就)?(?:忘掉|忘了|忽略|不用管|别管)我?(?:之前|刚才|前面|先前)?(?:说的|提的|提到的)?(?:关于)?"
        r"(?P<what>[^，,。]{1,20}?)(?:的(?:事|要求|规定|限制|说法|话|规则))?[。！!]?$"
    ),
    re.compile(r"(?:取消|撤回)(?P<what>[^，,。]{1,20}?)的(?:要求|规定|限制|说法|规则)[。！!]?$"),
    re.compile(r"(?P<what>[^，,。]{1,20}?)(?:的(?:要求|规定|限制|规则))?(?:作废|不算了|不再(?:适用|需要|有效))"),
)
VAGUE = frozenset(
    """
    rule requirement constraint instruction limit preference request earlier before 要求 规定 规则
    """.split()  # noqa: SIM905 (a list of words reads best as text)
)
