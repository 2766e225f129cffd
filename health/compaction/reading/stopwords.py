"""English words that say nothing by themselves. Chinese needs no such list: frequent pairs weigh little anyway."""

from __future__ import annotations

STOPWORDS = frozenset(
    """
    a about after again all also am an and any are as at back be because been before being but by can cannot could
    did do does doing don done down each even ever every false few for from further get gets getting go goes going
    gone good got great had has have having he hello her here hers hey hi him his how i i'd i'll i'm i've if in into
    is isn't it it's its itself just know let let's like look lot made make maybe me might more most much my myself
    nice no none nor not now null of off oh ok okay on once one only or other our ours out over own please quite re
    really right said same say see seems she should so some something soon still such sure take than thank thanks
    that that's the their them then there these they they're thing things think this those though through to today
    too true try two under until up us use used very want was wasn't way we we'll well were what when where which
    while who whom why will with would yeah yes yet you you'd you'll you're your yours
    """.split()  # noqa: SIM905 (a list of words reads best as text)
)
