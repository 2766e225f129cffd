"""What values look like, and closed classes of words around them: what adds, ends, changes. English and Chinese."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from health.compaction.reading.text import CJK, STOPWORDS, remembered
from health.compaction.terms.units import Role

# Of so many sentences is remembered how their words belong together, of so many words whether and what they say.
SENTENCES, WORDS = 16_384, 65_536
# So many pairs of sentences are remembered: a conversation is heard anew each time it has grown.
PAIRS = 16_384


class Sort(IntEnum):
    """What a value is."""

    DAY = 1
    TIME = 2
    MARK = 3
    PLACE = 4
    AMOUNT = 5
    NAME = 6


CHOSEN = frozenset((Sort.NAME, Sort.PLACE))
MONTH = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)(?:uary|ruary|ch|il|ust|ember|tember|ober)?"
DAYS = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
CAPITAL = r"[A-ZÀ-Þ][A-Za-zÀ-ÿ0-9_'’-]*"
# In lower case, or as a sentence begins. Not "one", which seldom counts.
COUNTS = (
    r"[Tt](?:wo|hree|en|welve|hirteen|wenty|hirty)|[Ff](?:our|ive|ourteen|ifteen|orty|ifty)|[Ss](?:ix|even|ixteen|eventeen"
    r"|ixty|eventy)|[Ee](?:ight|leven|ighteen|ighty)|[Nn](?:ine|ineteen|inety)"
)
# Chinese numerals, not 一, which seldom counts; and what is counted in.
ZH_DIGITS = "二两三四五六七八九十"
ZH_UNITS = "个位名张把扇间台辆条层件只本盏棵套份杯瓶箱袋块元斤克米秒分小天周年次晚遍页字人岁居室片公里倍折"
_ENGLISH: Mapping[Sort, str] = {
    Sort.MARK: (
        r"https?://[^\s<>\"')\]]{1,200}+|(?<![\w.+-])[\w.+-]{1,64}+@[\w-]{1,64}+\.\w[\w.]{0,64}+"
        r"|(?<![A-Za-z0-9_-])\+?\d[\d-]{3,20}[ -]?\d{3,20}(?![A-Za-z0-9_:])"
        r"|\b[A-Z]{1,3}\d{4,12}\b|(?:(?<=[a-z] )(?:[Rr]oom|[Ff]lat|[Hh]all|[Uu]nit) |(?<=^Room )|(?<=^Flat )"
        r"|(?<=^Hall )|(?<=^Unit ))\d{1,4}/\d{1,4}\b"
        # What programs call things, not where a sentence begins: a path, a name with _ or digits, an option.
        rf"|(?:(?<=[a-z:,\]{CJK}] )|(?<=[{CJK}：，]))(?:-[A-Za-z](?![A-Za-z0-9_'’-])|--[A-Za-z][\w-]{{0,40}}+"
        # A constant ("MAX_SIZE") is set to a value, and is none.
        r"|(?!and/or|he/she|his/her|[A-Z]?\d|[A-Z][A-Z\d]{0,30}+_[A-Z])(?:~?/?[A-Za-z])"
        r"(?=[A-Za-z0-9_./-]{0,80}[0-9_/])[A-Za-z0-9_-]{2,60}"
        r"(?:[./][A-Za-z0-9_-]{1,60}){0,8}|/[a-z][\w-]{2,40}(?=[,.]?(?: |$)))"
    ),
    Sort.DAY: (
        rf"\b(?:(?=[JFMASONDjfmasond])(?i:{MONTH})\.? \d{{1,2}}(?:st|nd|rd|th)?\b"
        rf"|(?=\d)(?:\d{{1,2}}\.?(?:st|nd|rd|th)?(?: of)? (?i:{MONTH})|\d{{4}}-\d\d-\d\d)\b"
        rf"|(?=[MTWFSmtwfs])(?i:{DAYS})s?\b|(?:end|middle|start|beginning) of (?i:{MONTH})\b)"
        r"|(?<= the )(?:(?<=by the )|(?<=on the )|(?<=to the )|(?<=for the )|(?<=with the )|(?<=so the ))"
        r"\d{1,2}(?:st|nd|rd|th)\b"
        r"(?=\W*$|[.,;:!?]| (?:by|instead|now|please|works|is|at|not|then|for|too)\b)"
    ),
    Sort.TIME: (
        r"(?i:(?<![\d:.])\d{1,2}:\d\d(?:\s?[ap]\.?m\b)?(?![\d:])|\b\d{1,2}\s?[ap]\.?m\b"
        r"|\b(?:noon|midnight|\w{1,12}+ o'clock|(?:half|quarter) (?:past|to) \w{1,12})\b)"
    ),
    Sort.PLACE: rf"\b\d{{1,4}}[a-z]? {CAPITAL}(?: {CAPITAL})+",
    Sort.AMOUNT: (
        # 第3组 at the beginning is which one, not how many.
        r"(?<![A-Za-z0-9_.,/-])(?<!^第)[$€£¥]?\d+(?:[.,]\d+)*(?:\s?(?:k|%|[kmgtKMGT][bB]|[KMGT]|k?[mg]|h)(?![A-Za-z0-9_]))?"
        r"(?![A-Za-z0-9_/]|[)）]班)"
        rf"|\b(?:{COUNTS}|[Hh]alf an?|an? (?:half|whole)(?! (?:lot|new)\b))\b"
    ),
    Sort.NAME: rf"(?<![A-Za-zÀ-ÿ0-9_'’-]){CAPITAL}",
}
_CHINESE: Mapping[Sort, str] = {
    # What something is called, or what is written.
    Sort.MARK: "|《[^》]{1,40}》|(?<=[用写叫为是成])“[^”]{1,12}”",
    Sort.DAY: (
        rf"|\d{{1,2}}月\d{{1,2}}[日号]?|[{ZH_DIGITS}一]{{1,2}}月[{ZH_DIGITS}一]{{1,3}}[日号]|(?:\d{{1,2}}|[{ZH_DIGITS}一]{{1,2}})月[初中底末]|(?:周|星期|礼拜)[一二三四五六日天]"
        r"|(?<![\d路街道巷里弄村园苑])\d{1,2}号(?![楼线店机门房间会院桌位])"
    ),
    # 详细一点 is no time.
    Sort.TIME: (
        r"|(?:[\d二三四五六七八九十]|一(?<![^午晨上天日到在于是十]一)){1,3}点(?:半|[\d一二三四五六七八九十]{1,3}分?)?"
    ),
    Sort.AMOUNT: (
        f"|[{ZH_DIGITS}一]{{1,3}}[百千万](?!别)[{ZH_DIGITS}一百千万]{{0,8}}"
        f"|(?<![{ZH_DIGITS}周期拜第])(?!十分(?!钟))[{ZH_DIGITS}][{ZH_DIGITS}一]{{0,2}}(?=[{ZH_UNITS}])"
        f"|(?<=[到为成])[{ZH_DIGITS}]{{1,3}}(?=$|[。，！了吧])"
        f"|(?:一(?=个?(?:小时|分钟|星期))|(?<![早晚前迟多少])半|一整)(?=[{ZH_UNITS}])"
    ),
    Sort.PLACE: r"|[^\W\da-zA-Z_送寄到在是去给就让]{2,4}(?:路|街|道|巷|里|弄|村|园|苑)\d+[号弄]?",
}
SORTS = {sort: re.compile(english + _CHINESE.get(sort, "")) for sort, english in _ENGLISH.items()}
# The same of a text in ASCII, which takes half of the time.
ENGLISH_SORTS = {sort: re.compile(english) for sort, english in _ENGLISH.items()}
HOUR = re.compile(rf"\b(?:at|to|by|till?|until|from) (?:\d{{1,2}}|{COUNTS})\b(?! [a-z]+s\b)(?![%:.])")
UNITS: Mapping[str, re.Pattern[str]] = {
    "money": re.compile(
        r"[$€£¥]\s?\d|\d\s?(?:[$€£¥]|(?:euros?|dollars?|pounds?|francs?|yuan|usd|eur|gbp|cents?)\b|[元块])"
    ),
    "span": re.compile(
        r"\d\s?(?:(?:seconds?|min(?:ute)?s?|hours?|days?|weeks?|months?|years?|h|ms)\b|分钟|个?小时|秒|天|个月|年)"
    ),
    "size": re.compile(r"\d\s?(?:[kmgt]b|bytes?)\b"),
    "length": re.compile(
        r"\d\s?(?:(?:[kcm]?m|met(?:er|re)s?|miles?|feet|inch(?:es)?|characters?|words|lines)\b|米|公里|字|行)"
    ),
    "mass": re.compile(r"\d\s?(?:(?:k?g|grams?|kilos?|lbs?)\b|公斤|克)"),
    "share": re.compile(r"\d\s?(?:%|percent\b)"),
    "people": re.compile(r"\d\s?(?:(?:people|persons?|guests?|adults?|children|heads)\b|[人位])"),
}
# What a value is not: "lunch is not at 1".
DENIED = re.compile(
    r"(?:\b(?:not|never)|n['’]t) (?:(?:at|on|in|by|to|from|for) )?(?:the )?[$€£¥]?\d[\w:.,]{0,12}"
    r"|不(?:[是在]|[要用](?=[^。！]{1,16}[改换]))(?=[\d一二两三四五六七八九十周])[\d一二两三四五六七八九十百千万:.月日号点半周]{1,10}"
)
# In lower case; nothing else holds a value that is no name. Each is quick to see where it cannot begin.
_VALUE_MARKS = re.compile(rf"[\d@§《“周期拜点半整{ZH_DIGITS}百千万]")
_VALUE_WORDS = re.compile(
    r"一个?[小分月星]|half |whole |end of |middle of |start of |beginning of |quarter |day|noon|midnight|o'clock|://"
    r"|-(?<=[a-z:,] -)|_(?<=[a-z_]_)[a-z_]|/(?<=[ a-z_~]/)[a-z_]"
)
_COUNTS = re.compile(rf"\b(?:{COUNTS.lower()})\b")
# Behind the mark of an amount they belong to it: two things are not about the same since both cost euros.
UNIT_WORDS = re.compile(
    r"(?:[上下中]午|早上|晚上)\s*§|§\s*(?:[上下中]午|早上|晚上)|§\s+(?:euros?|dollars?|pounds?|francs?|yuan|usd|eur|gbp|cents?|seconds?|min(?:ute)?s?|hours?|bytes?|met(?:er|re)s?"
    r"|miles?|feet|inch(?:es)?|characters?|words|lines|grams?|kilos?|lbs?|percent)\b",
    re.I,
)


class Phrases(NamedTuple):
    """Of two languages: a text in ASCII is searched for English alone, which takes a third of the time."""

    english: re.Pattern[str]
    chinese: re.Pattern[str]

    @classmethod
    def of(cls, english: str, chinese: str) -> Phrases:
        return cls(re.compile(english), re.compile(chinese))

    def search(self, text: str) -> re.Match[str] | None:
        return self.english.search(text) or (None if text.isascii() else self.chinese.search(text))

    def fullmatch(self, text: str) -> re.Match[str] | None:
        return self.english.fullmatch(text) or (None if text.isascii() else self.chinese.fullmatch(text))


# What was before and is not now: "I used to live in Ghent, it's Antwerp now".
CONTRAST = Phrases.of(
    r"\b(?:used to|formerly|previously) [^.]{1,80}\bnow\b", r"(?:以前|原来|原先|之前|过去)[^。]{1,40}(?:现在|如今|改)"
)
# What was forbidden may be done.
PERMITS = Phrases.of(
    r"\b(?:fine|okay|ok|allowed|welcome|may|can)\b.{0,60}\b(?:now|again|after all)\b"
    r"|\b(?:now|from now on)\b.{0,40}\b(?:fine|okay|allowed|may|can)\b",
    r"(?:可以|能|行|没关系)[^，。]{0,6}了",
)
# Closed classes of words: what adds, what holds at times only, what ends, what changes. They are looked for in lower
# case: that takes half as long as to ignore the case.
ADDS = Phrases.of(
    r"\b(?:also|too(?! [a-z])|as well|besides|another(?! (?:number|name|date|day|time|place|room|slot"
    r"|address|colou?r)\b)|plus|additional(?:ly)?"
    r"|in addition|on top of|extra(?! (?:minute|hour|day|week|month)s?\b)|apart from"
    r"|separate(?:ly)?|other (?!than)\w+|(?<!for )both|either|more(?= (?:for|of))"
    r"|(?<!rather )(?<!n't )(?<!n’t )(?<!not )"
    r"(?:get|have|like|want|need|order|add|buy|me)(?: to \w+)? (?:a|an|one|two|three|some))\b",
    r"还(?!是|记得|没|不)|另|也(?!许)|除了|此外|同时|额外|单独|各自|分别|附加|加上",
)
SOMETIMES = Phrases.of(
    r"\b(?:(?:second(?! thought)|third|in case|back-?up|fallback|spare|meanwhile|usually|except|unless|if|whenever"
    r"|for comparison"
    r"|on (?:\w+ )?(?:weekends?|weekdays|holidays)|at (?:night|weekends)|during|in (?:summer|winter|spring|autumn)"
    r"|(?:their|his|her) (?:\w+ ){1,2}(?:for|of|on|to|is|are))\b"
    r"|^(?:last|the previous) (?:year|time|month|week|summer|winter)\b"
    r"|(?:was|were|had|cost) [a-z ]{0,30}?last (?:year|time|month|week|summer|winter)\b"
    r"|^(?:back )?in (?:19|20)\d\d\b|(?:as a (?:child|kid|boy|girl|student)|in those days)\b"
    r"|(?:(?:for|an|the) (?:example|instance)|some people|other people|(?<!the )others)\b)",
    r"^(?:我们?)?以前(?![^。]*(?:现在|如今|改))|去年|上次|上回|备用|周末|节假日|如果|要是|(?<![一二三四五六七八九十])万一|(?<!听)[你他她]们?的|小时候|那时|当年|^在?(?:19|20)\d\d年"
    r"|比如|例如|例子|有些?人|别人|人家",
)
OTHERS = re.compile(r"(?:some|other) people|others|last time|有些?人|别人|人家|上[次回]")
IF = re.compile(r"\b(?:if|unless|in case|whenever)\b|如果|要是|(?<![一二三四五六七八九十])万一")
ENDS = Phrases.of(
    r"\b(?:(?:is|are|'s|be|been|called|fell|take|took|call) (?:\w+ ){0,4}off|(?:any ?more|any longer|no longer)"
    r"|(?<!n't )(?<!n’t )(?<!not )(?<!never )(?:cancel\w*|skip(?:s|ped|ping)?|drop(?:s|ped|ping)?|scrap(?:s|ped)?"
    r"|(?<!before i )forget|ignore|disregard|abandon\w*|withdr[ae]w\w*|stop(?:s|ped)?)|scratch|won't|falls? through"
    r"|fell through|no need|not? (?:\w+ ){0,3}needed|never ?mind|myself|ourselves"
    r"|revoke\w*|lifted|as you (?:like|please)|quit(?:s|ting)?|folded|(?:ga|gi)ven? (?:up|notice)"
    r"|(?:closed|shut) down|ditch(?:ed)?|shelved?|omit(?:ted)?|called off|do without|needn['’]t"
    r"|(?:leave|left) (?:\w+ ){1,4}out(?= of|\W*$)|(?:let|letting) (?:\w+ ){1,4}go(?=\W*$)"
    r"|cross(?:ed)? (?:\w+ ){0,4}o(?:ut|ff))\b",
    r"掉(?:了|吧|啦)?(?=[，。！!]|$)|别[^，。忘]{1,4}了(?=[，。！!]|$)"
    r"|不(?:[去来做买订用要办开写看吃喝住请约搬装修养学练打换租招卖送寄管收发跑骑走等]|参加|考虑|举行|提供|进行|安排)[了啦]"
    r"|当我没说|忘掉|忽略|收回|放弃|没必要|辞[了退]|解雇|推[掉了]|黄了|泡汤|作罢"
    r"|(?<![别不])取消|不用|不再|不需要|不必|作废|算了|撤|别再|没有了|不办|不要了|停[办掉了用]|自己|(?<![别要])忘了|不管|免了|随便|退[租订掉]|不去|不参加|解散",
)
# What once was or went wrong is no plan, unless a change is told of.
PAST = Phrases.of(
    rf"\b(?:missed|nearly|almost|used to|ago|yesterday|last (?:week|month|year|night|time|{DAYS}))\b",
    r"误了|错过|差点|差一点|昨天|前天|曾经|上个?(?:周|星期|礼拜|月)",
)
CHANGES = Phrases.of(
    r"\b(?:now|instead|rather|after all|actually|chang\w*|switch\w*|mov(?:e|es|ed|ing)|replac\w*|swap\w*|confus\w*"
    r"|correct(?:ion|ed)?|wrong|mistaken?|misread|mix(?:ed)?|sorry|better|prefer|again|back|out|off|less|from|but|nah|nope"
    r"|turn(?:s|ed) out|turned|looks like|it's|decided|undo|wait|oops|new|latest|updated?|revised|ah|oh|hm+"
    r"|meant|think(?:ing)?|thought|postponed?|delayed|slip(?:s|ped)?|slid|shift(?:s|ed)?|extended|raised|cut|then"
    r"|increased|reduced|lowered|rebook\w*|reschedul\w*|brought forward|pushed|put off|stays?|keeps?|took over|since"
    r"|tak(?:es|en) over|re(?:assign|rout|vert|stor)\w*|returns? to|bumped|stepp?(?:s|ed) (?:in|down|back)"
    r"|second thoughts?"
    r"|should (?:read|be|have been)|fix(?:ed)?|make (?:it|that)|these days|so|what (?:\w+ ){1,6}is)\b",
    r"的是|^以后|改|(?<!转)换|更|等一?[下等]|还是|不(?!错)|(?<!不)错|现在|别|而是|挪|延|调|迁|恢复|回到|又是|混|其实|推迟|提前|应[该当]|那天|涨|降|减|从|转|接[手替]|交[给回]|先前|原来|最好",
)
# Of these what seldom says anything else.
TURNS = Phrases.of(
    r"\b(?:chang\w*|instead|rather|after all|actually|switch\w*|replac\w*|swap\w*|no longer|from now on)\b",
    r"改[成为用]|换成|还是[^，。]{1,12}吧|不再",
)
OPENS_CHANGE = re.compile(
    r"(?:no|nope|nah|sorry|ah|oh|oops|wait|h[ao](?:ng|ld) on|actually|hm+|correction|typo|my bad|apologies|update"
    r"|[a-z]{2,12}+ that|i mis[a-z]{2,12}+)\s*[,.!:;—-]"
    r"|(?:rather|not|make (?:it|that)|no,? wait)\b"
    r"|(?:不|不对|错了|哦|啊|等等|等一下|算了)[，。！]|(?:还是|改成|换成)"
)
CLOSES_CHANGE = re.compile(r"\b(?:after all|instead|rather)\W*$|^(?:那就|还是|就).{1,12}(?:吧|好了|算了)\W*$")
FORBIDS = Phrases.of(
    r"\b(?:no|not|never|nothing|avoid|without|allergic|neither|nor)\b|n['’]t\b",
    r"别|不|勿|过敏",
)
ANYBODY = frozenset(("i", "i'm", "we", "you", "he", "she", "they", "it's"))
DETERMINERS = frozenset("the my our your his her their its this that these those".split())  # noqa: SIM905
OF = frozenset("for of about with to on in".split())  # noqa: SIM905
ASIDE = frozenset("for about of with concerning regarding".split())  # noqa: SIM905
INDEFINITE, STARTS = frozenset(("a", "an", "A", "An")), frozenset(".!?:…")
TALKING = frozenset((Role.USER, Role.ASSISTANT))
BREAKS = frozenset((".", ",", ";", ":", "—", "so", "and", "but"))
AFTER_SUBJECT = frozenset(
    """
    is are should will must shall can can't cannot has have : ? needs need may isn't aren't
    """.split()  # noqa: SIM905 (a list of words reads best as text)
)
# What says no more than that something is so; and what is an attribute of something, no thing itself.
PLAIN = """
    able actually add address agree agreed allow already alright also always amount another anything appointment around
    arrive arrives ask asked away bad become begin begins belong belongs better between beyond big
    booked both bring brings budget call called came can care case change changed charge check clear color
    colour come comes contact cool correct cost costs could date day days deadline decide decided deliver
    depart departs different done drop easy else end ends enough error everybody everyone everything except
    fact feel finally find fine first fixed forget format free full gave gets give given gives goes gotcha
    guests haha happen happens hear heard help here hey hmm hold however idea inside instead keep keeps kept
    kind know last late later leave leaves left less limit little location long looking looks main makes many
    matter mean means meant meet mind mistake moment month months morning move moved moves much must name
    need nah needs never new next nice nope nothing number offer often okay only order ordered owner people per
    person pick picked place plan planned please point possible price put quantity quick rather ready
    remember responsible run runs said send sent set several shall short show simple since slot small
    something sorry start starts stated stay stays stop style such sure taken takes talk tell thanks though
    time times together told tomorrow tonight took turn turned turns typo under understood update used usual
    value venue visitors wait wants way week weekend weeks well went whole will wish without word words work
    works world worth write wrong yay yea year years yep yesterday mr mrs ms dr
"""
ZH_COMMON = frozenset(
    "的了是在一我你他她它们这那就都也还和与把被给到从为以要能可吧吗呢啊呀哦嗯不没有很最再又才只先后上下个些点元块月日号时用做来"
    "去说看想让请问好谢应该知道送寄找定写改换更由归"
)
# What changes, in Chinese, and what stands between a number and what it counts.
ZH_CHANGING = frozenset("改换调涨降挪延推迟提前减增升恢复变移至得约共需新旧现原")
ZH_MEASURES = frozenset("个位名把张扇间台辆条层件只本盏棵套双份块根盘")
ZH_GENERIC = frozenset(
    """
    负责 预算 地址 时间 分钟 数量 收货 日期 地点 价格 名字 喜欢 需要 安排 记得 以后 大家 电话 截止
    """.split()  # noqa: SIM905 (a list of words reads best as text)
)
ZH_NAME = re.compile(
    r"(?:(?<=[是由找问给跟和叫请归为换成就，、：])|^)"
    r"[王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁宋唐许韩冯邓曹彭曾萧田董袁潘于蒋蔡余杜叶程苏魏吕丁任沈姚卢姜崔钟谭陆汪范金石廖贾夏韦方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严武戴莫孔汤]"
    r"(?:先生|女士|小姐|师傅|[\u4e00-\u9fff]{1,2}?(?=$|[\s，。！、]|[负在管来去帮接说的是更好吧了就都也就行]))"
)
# Who takes something over or looks after it is a name, also where no other sentence shows it.
IN_CHARGE = re.compile(
    r"(?:^|[.:,] )([A-Z][a-z]{1,30}+) (?:has |will |now )?"
    r"(?:tak(?:es?|en) over|took over|steps in|stepped in|replace[sd]|looks after|handle[sd]|is in charge)\b"
)
TOKEN = re.compile(rf"[{CJK}]+|[^\W_{CJK}](?:[^\W{CJK}]|['’-])*+|[^\w\s]")
ASCII_TOKEN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_'-]*+|[^\w\s]")
# The mark comes first: a search then looks at nothing else.
CODE = re.compile(r"[`{}<>=\\|(](?:(?<=[`{}<>=\\|])|(?<=[A-Za-z_]\())")
COMMANDS = ("/", "#", "$")
REQUEST = re.compile(r"(?:\b\w{1,20}+,? )?(?:could|can|would (?:you|i|we)|will|shall|may) |能不能|可以|可否|能否", re.I)
SHORTENED = ("n't", "n’t", "'ll", "’ll", "'re", "’re", "'m", "’m", "'ve", "’ve", "'d", "’d")
NO_NAME = ("ed", "ly", *SHORTENED)
# In Chinese five characters are a sentence.
QUOTED = re.compile(
    r"\"[^\"]{25,240}\"|“[^”]{25,240}”|「[^」]{25,240}」|'(?<!\w')[^']{25,240}'(?!\w)"
    r"|“[^”A-Za-z]{5,240}”|「[^」A-Za-z]{5,240}」"
)
# Deeds are done and follow each other; what is handed over ("these are the files") and what a thing has is no wish.
DEEDS = re.compile(
    r"^(?:(?:please|now|then|and|also) )*(?:add|remove|delete|rename|fix|refactor|create|implement|check|run|test|move"
    r"|update|install|build|debug|find|show|explain|look|open|commit|push|merge|revert|review|print|log|draw)\b"
    r"|^(?:these are|this is|here(?:'s| is| are))\b|^(?:以下|下面|这是|这里)"
    r"|(?<!to )\b(?:has|had)\b(?! to\b)"
)
# A question whose mark nobody typed. Who says hello so goes on with a wish; 怎么都行 asks nothing.
ASKS = Phrases.of(
    r"^(?:(?:and|so|but|ok|hey|hi|then)\b,? )?(?:how(?! about we)|why|which"
    r"|who(?:'s| is)|what(?:'s| is| are| do| does| did| would| about)|where(?:'s| is| are| do| does| can| should)"
    r"|when(?: is| are| do| does| did))\b(?!.{0,160}, (?:i|we|please)\b)"
    r"|^(?:does|is|are|did (?:i|we|you|they|he|she|it)|should i|shall i|do (?:i|we|you|they)) (?!\w{1,20},)",
    r"为什么|为啥|怎么(?!都|也|样都)|咋|(?<![没有])(?:什么|啥)(?!都|也|时候都)"
    r"|多[久远少大高长重宽深](?!都|也)|[吗嘛]$|[吗嘛][。，！~]|谁(?!都|也)|哪(?!怕)|(?<![有好这那])几[个点号]"
    r"|[\d一二三四五六七八九十日天点号半]还是(?:周|星期|礼拜)?[\d一二三四五六七八九十日天]",
)
# Who tells what a letter says of a date states the date; where a colon or a quote follows, it is another's text.
TELLS = re.compile(
    r"\b(?:says?|said|reads|read that|wrote|writes|claims?|told (?:me|us)|according to)\b(?!\s*,?\s*[:：\"“])", re.I
)
CLAUSE = re.compile(r"[,;:，；：、—sb](?:(?<=[,;:，；：、—])|(?<=\bs)o\b|(?<=\bb)(?:ecause|ut)\b)")
# Where somebody begins no sentence with a capital.
UNMARKED = re.compile(r"(?<=[a-z\d)'’][.!?]) (?=[a-z])")
PARTED = re.compile(rf"(?<=[,;:—])(?=[ {CJK}])|(?<=[，；：])|(?= (?:so|but|because) )")
# What is told of a thing behind a colon: "the cellar: 520 euros". Who speaks is no such thing.
HEADING = re.compile(
    r"\b((?:the|my|our|your|his|her|their) [a-z]{1,20}+(?: [a-z]{1,20}+)?|^(?i:budget|price|deadline|port|address)): "
)


def may_hold_values(low: str) -> bool:
    return bool(_VALUE_MARKS.search(low) or _VALUE_WORDS.search(low) or _COUNTS.search(low))


def raw_tokens(text: str) -> list[str]:
    """The words and marks of a text as written."""
    return (ASCII_TOKEN if text.isascii() else TOKEN).findall(text)


@remembered(WORDS)
def stem(word: str) -> str:
    """Without the endings of a genitive and a plural: "tenant's", "tenants'"."""
    word = word.rstrip("'’").removesuffix("'s").removesuffix("’s")
    if len(word) > 5 and word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


COMMON = frozenset(map(stem, (*PLAIN.split(), *STOPWORDS))) | STOPWORDS
# What is paid for a thing is told of the thing, unless something else is.
PAID = frozenset(("rent", "fee"))
ATTRIBUTES = frozenset(
    """
    address budget price date deadline appointment slot venue location name amount quantity limit value colour
    color format owner contact guest visitor person people time day place number
    """.split()  # noqa: SIM905 (a list of words reads best as text)
)


# For what is counted it is enough that there is a number.
_AS_DIGITS = str.maketrans(dict.fromkeys(f"{ZH_DIGITS}百千万半", "0"))


@remembered(SENTENCES)
def units_of(text: str) -> frozenset[str]:
    """Kinds of what its numbers measure."""
    low = text.lower() if text.isascii() else text.lower().translate(_AS_DIGITS)
    return frozenset(name for name, pattern in UNITS.items() if pattern.search(low))
