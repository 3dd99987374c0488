r"""LaTeX formulas as MathML for browsers, and as plain text for terminals.

`plain` converts the MathML of a formula to text: a fraction becomes ``a/b``, an index ``a_i``, a
power ``a^2``, and an accent a combining character. Formulas in texts are enclosed in dollar signs.

Formulas may come from users, so all text is escaped. A formula with an unknown command, a link or a
style is shown as its LaTeX source.
"""

from __future__ import annotations

import html
import re
import unicodedata
from xml.etree import ElementTree

FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$]+)\$", re.DOTALL)
ACCENTS = {"^": "\u0302", "~": "\u0303", "¯": "\u0304", "˙": "\u0307", "¨": "\u0308", "→": "\u20d7"}
"""MathML accent -> combining character."""
SPACED = {*"=<>≤≥≈∝→∈≫≪≠≡∼+-−×⋅·∀∃∧∨⟹⟶←⇒⇔:"}
"""Operators printed with a space on both sides."""
FUNCTIONS = {"exp", "log", "ln", "max", "min", "sup", "inf", "sin", "cos", "tanh", "arg", "lim"}
UPRIGHT = re.compile(r'(?<=\w)</mi><mi mathvariant="normal">(?=\w)')
"""Pattern of the tags between two letters of an upright word, as MathML tags each letter."""
FUNCTION = rf"<mi>(?:{'|'.join(sorted(FUNCTIONS))})</mi>"
LETTER = "(?:mi|mn|mrow|msub|msup|mfrac)"
THIN = '<mspace width="0.167em" />'
"""TeX's thin space between the name of a function and a letter or a number."""
HARMLESS = set(
    """xmlns display displaystyle scriptlevel mathvariant stretchy fence form separator accent
    accentunder linebreak linethickness minsize maxsize width height depth lspace rspace symmetric
    columnalign columnspacing columnlines rowspacing rowlines movablelimits largeop notation
    """.split()  # noqa: SIM905
)
"""Permitted MathML attributes: purely presentational, without addresses or styles."""
SHORT = 12
"""Maximum number of characters of an index that is written without spaces."""
SINGLE = re.compile(
    r"\w+(?:\.\d+)?['′\u0300-\u036f]*|[^\W\d_]+_\w|\([^()]*\)|⟨[^⟨⟩]*⟩|‖[^‖]*‖|\|[^|]*\|"
)
"""Pattern of plain texts that need no parentheses in a fraction or an index."""


def mathml(latex: str, display: bool = False) -> str:
    r"""MathML element of a formula, or of its LaTeX source if it cannot be converted.

    Examples
    --------
    >>> mathml(r"\href{javascript:alert(1)}{x}")
    '<math><mtext>\\href{javascript:alert(1)}{x}</mtext></math>'
    """
    try:
        return _converted(latex, display)
    except Exception:  # the converter raises exceptions of many types for invalid LaTeX
        shown = "".join(sign for sign in latex if sign.isprintable() or sign.isspace())
        return f"<math><mtext>{html.escape(shown, quote=False)}</mtext></math>"


def _converted(latex: str, display: bool = False) -> str:
    """Convert a formula to MathML; raise ValueError for an unknown command or element."""
    from latex2mathml.converter import convert_to_element

    for name in ("aligned", "split"):  # environments unknown to the converter
        latex = latex.replace(f"{{{name}}}", "{align*}")
    tree = convert_to_element(latex, display="block" if display else "inline")
    for element in tree.iter():
        if element.text == "&" or (element.text or "").startswith("\\"):
            raise ValueError(f"{element.text} is unknown")
        if not element.attrib.keys() <= HARMLESS:
            raise ValueError(f"{element.tag} is not presentational")
        # Symbols are character references; unescape them, or they would be escaped twice.
        element.text = html.unescape(element.text) if element.text else None
    made = ElementTree.tostring(tree, encoding="unicode")
    made = re.sub(rf"(</{LETTER}>)(?={FUNCTION})", rf"\1{THIN}", UPRIGHT.sub("", made))
    made = re.sub(rf"({FUNCTION})(?=<{LETTER}>)", rf"\1{THIN}", made)
    ElementTree.fromstring(made)  # raises if there are control characters
    return made


def plain(latex: str) -> str:
    r"""Plain text of a formula.

    Examples
    --------
    >>> plain(r"\frac{d \log G}{d\tau} \geq \alpha_{ij}^2")
    '(d log G)/(d τ) ≥ α_(i j)^2'
    >>> plain(r"\hat y = \sum_h u_h\, \beta^T U_h x_q")
    'ŷ = ∑_h u_h β^T U_h x_q'
    """
    try:
        tree = ElementTree.fromstring(_converted(latex))
    except Exception:  # as in `mathml`
        return latex
    text = re.sub(r"\s+", " ", _written(tree)).strip()
    text = re.sub(r"(?<=[(\[{]) | (?=[)\]}])|;(?= ?[})\]])", "", text)
    return unicodedata.normalize("NFC", text)


def plain_text(text: str) -> str:
    r"""Convert a text with formulas (dollar signs) and code (backticks) to plain text.

    Examples
    --------
    >>> plain_text("the ``risk`` is $R \\leq 1$")
    'the risk is R ≤ 1'
    """
    return FORMULA.sub(lambda match: plain(match[1] or match[2]), text).replace("`", "")


def _written(node: ElementTree.Element) -> str:
    """Plain text of a MathML element."""
    kind, parts = node.tag.rpartition("}")[2], list(node)
    if kind == "mtext":
        return f" {(node.text or '').replace(chr(160), ' ')} "
    if kind == "mspace":
        return " "
    if kind in ("mi", "mn", "mo", "ms"):
        return _token(kind, (node.text or "").strip())
    if kind == "mfrac":
        return "/".join(_whole(part) for part in parts)
    if kind in ("msub", "munder"):
        return f"{_whole(parts[0])}_{_script(parts[1])}"
    if kind in ("msup", "mover"):
        return _above(*parts)
    if kind in ("msubsup", "munderover"):
        return f"{_whole(parts[0])}_{_script(parts[1])}^{_script(parts[2])}"
    if kind == "msqrt":
        return f"√{_whole(node, inside=parts)}"
    if kind == "mtr":
        return _joined(parts).strip() + "; "
    return _joined(parts)


def _joined(parts: list[ElementTree.Element]) -> str:
    """Join the plain texts of elements; a space separates adjacent letters."""
    text = ""
    for part in parts:
        piece = _written(part)
        sign = text.rstrip()[-1:]
        if piece in (" − ", " + ", " ± ") and (not sign or sign in "([{,;=≤≥<>→^/∈"):
            piece = piece.strip()  # a unary sign has no spaces around it
        after = re.search(r"[^\W_]['′)\]]*$", text) or re.search(r"[_^]\S*[\w)′*]$", text)
        numbers = re.search(r"[\d.]$", text) and re.match(r"[\d.]", piece)
        apart = after and not numbers and re.match(r"\w|√|∑|∏", piece)
        text += (" " if apart else "") + piece
    return text


def _token(kind: str, text: str) -> str:
    """Plain text of a letter, a number or an operator."""
    if text in SPACED or (text in FUNCTIONS and kind in ("mi", "mo")):
        return f" {text} "
    if kind == "mo" and text in (",", ";"):
        return f"{text} "
    return "" if text in ("\u2061", "\u2062") else text


def _whole(node: ElementTree.Element, inside: list[ElementTree.Element] | None = None) -> str:
    """Plain text of an element, in parentheses if it has several parts."""
    made = _written(node) if inside is None else _joined(inside)
    text = re.sub(r"\s+", " ", made).strip()
    return text if len(text) < 2 or SINGLE.fullmatch(text) else f"({text})"


def _script(node: ElementTree.Element) -> str:
    """Plain text of an index or exponent, without spaces around operators."""
    text = _whole(node)
    return re.sub(r" ?([^\w\s()]) ?", r"\1", text) if len(text) < SHORT else text


def _above(base: ElementTree.Element, upper: ElementTree.Element) -> str:
    """Plain text of a power, an accent, or a prime."""
    text, sign = re.sub(r"\s+", " ", _written(base)).strip(), _written(upper).strip()
    if sign in ACCENTS and upper.tag.rpartition("}")[2] == "mo" and len(text) == 1:
        return text + ACCENTS[sign]
    if sign and set(sign) <= {"′", "'"}:
        return text + sign
    return f"{_whole(base)}^{_script(upper)}"
