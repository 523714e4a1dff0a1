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

    `followed` are those of an answered message that has no subject of its own.
    `center` is the mean of its vectors: what all texts have in common is left out of similarities.
    """

    asked: FlowWeights
    answered: FlowWeights
    followed: FlowWeights
    center: tuple[float, ...] = ()


def _center(step: float, digits: str) -> tuple[float, ...]:
    """The numbers of a mean, each a signed byte times `step`."""
    return tuple(step * number for number in array("b", b85decode(digits)))


WORDS: Final = ModelFlow(
    FlowWeights((40.0, 1.6, -2.0, -3.4, -4.0, -4.0, 0.0, 1.2), (40.0, -5.6, 0.0, -0.3)),
    FlowWeights(
        (15.0, 0.0, 15.0, 1.6, -1.0, -2.0, -2.5, -2.5, -1.0, 1.2),
        (15.0, 0.0, 15.0, -3.5, 0.0, -0.3),
    ),
    FlowWeights((0.0, 15.0, 3.0, 3.0, 3.0, 3.0, 3.0, 0.0, 0.0), (0.0, 15.0, 0.0, 0.0, -0.3)),
)
"""Set by hand: texts on one subject often share no word, but those that do are on one subject."""
FLOWS: Final[dict[str, ModelFlow]] = {
    "words-1": WORDS,
    "all-MiniLM-L6-v2-int8": ModelFlow(
        FlowWeights(
            (9.76, 1.35, -1.03, -1.78, -2.28, -3.26, 0.50, 1.22), (13.53, 0.77, -3.08, -0.39)
        ),
        FlowWeights(
            (2.46, 3.69, 7.34, 0.63, -1.78, -2.45, -2.80, -4.08, 1.00, 1.16),
            (4.56, 3.60, 10.00, -0.17, -3.11, -0.37),
        ),
        FlowWeights(
            (4.83, 6.31, -0.04, -0.27, 0.00, 0.00, 0.00, 1.00, -0.53),
            (5.30, 7.20, 0.17, 0.13, -1.14),
        ),
    ),
    "universal-sentence-encoder-multilingual-3": ModelFlow(
        FlowWeights(
            (8.95, 1.73, -0.18, -1.41, -1.73, -2.90, 0.50, 0.91), (12.45, 1.32, -3.08, -0.20)
        ),
        FlowWeights(
            (3.48, 3.89, 7.36, 1.23, -0.98, -1.96, -2.28, -3.54, 1.00, 0.78),
            (5.45, 3.91, 8.95, 0.49, -2.96, -0.20),
        ),
        FlowWeights(
            (4.77, 6.44, 0.10, -0.32, 0.00, 0.00, 0.00, 1.00, -1.23),
            (3.32, 6.64, 0.17, 0.10, -1.25),
        ),
        _center(
            0.0007587,
            ";Q0v-?GXI<(hCg&BLV#Y@$mcu^Y;t`81fMR|NRL81<wf!;r|N&_Vnun1Opfa_W}+J{rUzf0r&(D0`dC("
            "`}Xn$0Q?{I0|*WX|LX@gfd}^K0pJJ@0}t{0^#Ka|)er&r`T_m<74!n%_Wkq)5CR7P0R{U9{0I900s##J"
            "1pVs-{P*_}{0;j83kUlR8~o+<5&i!6_zM030|@g0?fv=<1Q_`e0rCG11nmA3`Tz?J3J3fB0R;*p1P}xT"
            "_WSww>HYl$A^#5s2LKWE?)3}*-T(&u1Qh84`u_R%2?7TH{`l(&4FCri01Eg91Mu_!`~(E`_6+(7@%{J&"
            "1O@OG3kL!C@&Eqi2>kyE00;R45()wZ>JtzF_XXqr3i$^O|Lr8-00aQo4FUtz`wI*V=Jovv^#$`44e{;#"
            "0}=T59qa@SA^`3H2?qSW`~(#Z`~>~<@%#Dn5A*~M>I4V|>=g^`3ibBy`1kY$3it>A6!G@<=lS~k{_q3t"
            "`}+Ov^$Gd>1^@#B^a>992KgQY1Oos4^aJ$u{`?9D1pWs76#@MN?)w$?776wL{{H+42J!~<3hf6F`0hOi"
            "{{IOF_5$?*2>JRG2oMkl{^<t;H2xU@_WKtG^#%|F_1^^g7x)kp=?w-M00a2f2@D7R{r~a;3=0MP3F#Oi",
        ),
    ),
}
