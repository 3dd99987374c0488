"""Common parts of expressions by name, as sympy finds them, each distinct part worked on once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy
from sympy.core.exprtools import gcd_terms
from sympy.core.mul import _keep_coeff
from sympy.simplify.cse_opts import sub_post, sub_pre


def shared_parts(
    expressions: Sequence[sympy.Expr],
) -> tuple[list[tuple[Any, Any]], list[sympy.Expr]]:
    """Common parts by name, and the expressions in them.

    Parameters
    ----------
    expressions : sequence of sympy.Expr

    Examples
    --------
    >>> import sympy
    >>> x, y = sympy.symbols("x y")
    >>> shared_parts([sympy.exp(x + y) + (x + y) ** 2])
    ([(t0, x + y)], [t0**2 + exp(t0)])
    """
    names = (sympy.Symbol(f"t{k}", real=True) for k in range(10**6))
    basic = [(sub_pre, sub_post), (factored, None)]  # sympy's own, with another `factor_terms`
    return sympy.cse(list(expressions), symbols=names, optimizations=basic)


def factored(expression: sympy.Expr) -> sympy.Expr:
    """The result of ``sympy.factor_terms``, which works on a part as often as it occurs.

    Parameters
    ----------
    expression : sympy.Expr
        Of sums, products, powers and functions.
    """
    known: dict[Any, Any] = {}

    def once(part: Any) -> Any:
        if part not in known:
            known[part] = _factored(part, once)
        return known[part]

    return once(expression)


def _factored(part: Any, once: Any) -> Any:
    """One part, from its own parts; see ``factor_terms`` of sympy for each step."""
    if not isinstance(part, sympy.Basic) or part.is_Atom:
        return part
    if part.is_Pow or part.is_Function or not hasattr(part, "args_cnc"):
        arguments = tuple(once(each) for each in part.args)
        return part if arguments == part.args else part.func(*arguments)
    content, rest = part.as_content_primitive(radical=False, clear=False)
    if rest.is_Add:
        terms = [once(each) for each in sympy.Add.make_args(rest)]
        if all(a.as_coeff_Mul()[0].extract_multiplicatively(-1) is not None for a in terms):
            content, terms = -content, [-a for a in terms]
        held = {}
        for number, term in enumerate(terms):
            _, exponent = term.as_base_exp()
            if exponent.is_Mul and exponent != sympy.Mul(*exponent.args):
                terms[number] = sympy.Dummy()
                held[terms[number]] = term
        rest = sympy.Add._from_args(terms)
        rest = gcd_terms(rest, isprimitive=True, clear=False, fraction=False).xreplace(held)
    elif rest.args:
        rest = rest.func(*[once(each) for each in rest.args])
    return _keep_coeff(content, rest, clear=False, sign=True)
