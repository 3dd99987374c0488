from theory.notation import Letter, Notation
N="Phi_m Phi_0 alpha_m alpha_0 rho own_attention gap global_own_attention global_gap P Delta Delta_eff U L kappa_s kappa_c gamma".split()
NOTATION=Notation("stub",tuple(Letter(n,n,n,n) for n in N))
