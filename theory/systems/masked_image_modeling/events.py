import sympy
from theory.events import Crossing
from .notation import NOTATION
ORDER_PARAMETERS=("Phi_m","Phi_0","alpha_m","alpha_0","rho","own_attention","gap","global_own_attention","global_gap")
S=NOTATION.symbol
EVENTS=(Crossing(name="E2",meaning="",latex="",after=None,expression=1-S("rho"),guard=sympy.Integer(1)),
Crossing(name="E4",meaning="",latex="",after=None,expression=S("own_attention")-sympy.Rational(1,2),guard=sympy.Integer(1)),
Crossing(name="E5",meaning="",latex="",after=None,expression=sympy.Rational(1,1000)-S("gap"),guard=sympy.Integer(1)),)
