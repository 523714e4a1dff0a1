"""What the signs of a message's topic weigh. The numbers are written by ``tools/topics``.

The first numbers of each row are for similarities: of the message, and with an answer, of the
answer and of both as one text. The others are for `firnline.topics.flow.stay_terms` and
`return_terms`, in their order.
"""

from __future__ import annotations

from array import array
from base64 import b85decode
from typing import Final, NamedTuple


class FlowWeights(NamedTuple):
    """The weights of what speaks for the active topic, and for going back to another one."""

    stay: tuple[float, ...]
    go_back: tuple[float, ...]


class ModelFlow(NamedTuple):
    """The weights for an embedder: while a question waits for its answer, and with the answer.

    `center` is the mean of its vectors: what all texts have in common is left out of similarities.
    """

    asked: FlowWeights
    answered: FlowWeights
    center: tuple[float, ...] = ()


def _center(step: float, digits: str) -> tuple[float, ...]:
    """The numbers of a mean, each a signed byte times `step`."""
    return tuple(step * number for number in array("b", b85decode(digits)))


WORDS: Final = ModelFlow(
    FlowWeights((40.0, 1.6, -2.0, -3.4, -4.0, -4.0, 0.0, 1.2), (40.0, -5.6, 0.0, -0.3)),
    FlowWeights(
        (15.0, 0.0, 15.0, 1.6, -1.0, -2.0, -2.5, -2.5, 1.0, 1.2), (15.0, 0.0, 15.0, -3.5, 0.0, -0.3)
    ),
)
"""Set by hand: texts on one subject often share no word, but those that do are on one subject."""
FLOWS: Final[dict[str, ModelFlow]] = {
    "words-1": WORDS,
    "all-MiniLM-L6-v2-int8": ModelFlow(
        FlowWeights(
            (9.85, 1.66, -0.65, -1.69, -2.50, -3.35, 0.50, 1.19), (13.44, 0.57, -2.92, -0.35)
        ),
        FlowWeights(
            (2.20, 3.86, 7.38, 0.68, -1.74, -2.36, -2.96, -4.26, 2.00, 0.86),
            (4.31, 4.16, 9.88, -0.48, -2.63, -0.44),
        ),
    ),
    "universal-sentence-encoder-multilingual-3": ModelFlow(
        FlowWeights(
            (9.65, 2.01, 0.02, -1.32, -1.79, -2.62, 0.50, 1.01), (12.20, 1.25, -3.05, -0.21)
        ),
        FlowWeights(
            (4.03, 3.68, 7.64, 1.45, -0.93, -1.97, -2.39, -3.34, 2.00, 1.10),
            (4.86, 4.41, 9.48, 0.45, -3.04, -0.22),
        ),
        _center(
            0.0007556,
            "+W7+x?hpU<&kPF#Cj$Wf^78ru_4W(_8S)PQ|NICA1<(l#;{OT*_4M!p1O*rZ`Tq|M{`><l1NsIG0P*|%"
            "{P*z&{Qw^K0|^cb|LX-cfd}>L0^kV^1rYK3^!^O{))EK#`2_p;7V`z(_Wkn*4Fd%M0|@yB`3L*~1O*HP"
            "1O4j*`t|q|`U?924G8-YA^qa=761PD_6q<41PSs2@BR1-0vGlW0rUP31?v44{QeCM2?qZG0|f^n1rPxS"
            "_WSqt?*91&AOH;q1^p27^7IV<-T(*w1{CN5`TzO%2?PcK{`cty3;+fe01NpB1o86!{Rsi{_zw09^8oq<"
            "1Ox6D3kU@F_5lFl3i|*F1_b*D5C{PQ>k|zF_zC6z3HJyN|Lh~*0{{Nh5&#6({R|2U=Jfdr^8@k|3-Rpz"
            "0TB819_R%PAOY(D4GR9g{RSKk{Q~^+^8EPp6!QcN=>!G^?iC8|3-|W$_xSh)2=xgA6Y=-+=lJ^h{_p|s"
            "{{8;#^$7j>2?7EE^a&C93Hu)d0s{O4^#b<w0RRUJ1pf#A6#)MO?E4-37zg$K{sQ|61@Z;-4ebdK_v$_X"
            "{{RLF`ULj@2l@RJ3lI(n`|Ab;H2)d__WKtI^av0I^410V7WfVs=??}Q0RsHi2n_@Q{s8g=4GIPQ2j>+Y",
        ),
    ),
}
