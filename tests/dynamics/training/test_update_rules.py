from pathlib import Path

import jax
import numpy as np
import optax
import pytest

import dynamics
from dynamics.training.schedules import schedule_of
from theory.update_rules import RULES

jax.config.update("jax_platforms", "cpu")
SUPPORT = Path(__file__).resolve().parents[2] / "support" / "models"
STEPS = 1000
SEVEN = {
    "gd": (dynamics.rule("gd"), optax.sgd(0.01)),
    "momentum": (dynamics.rule("momentum"), optax.sgd(0.01, momentum=0.9)),
    "nesterov": (
        dynamics.rule("momentum", nesterov=True), optax.sgd(0.01, momentum=0.9, nesterov=True)
    ),
    "sign": (dynamics.rule("sign"), optax.sign_sgd(0.01)),
    "adam": (dynamics.rule("adam"), optax.adam(0.01)),
    "adamw": (dynamics.rule("adamw"), optax.adamw(0.01)),
    "normalized": (
        dynamics.rule("normalized"),
        optax.chain(optax.normalize_by_update_norm(), optax.scale(-0.01)),
    ),
    "adam with decay": (
        dynamics.rule("adam", weight_decay=0.01),
        optax.chain(optax.add_decayed_weights(0.01), optax.adam(0.01)),
    ),
}  # fmt: skip


def start(width=3):
    draws = np.random.default_rng(3)
    return {"w": draws.normal(size=(width, 2)), "v": draws.normal(size=width)}


def risk(theta, xp, target=0.5):
    hidden = xp.tanh(theta["w"] @ xp.array([1.0, -0.7]))
    return (theta["v"] @ hidden - target) ** 2 + 0.01 * (theta["w"] ** 4).sum()


def leaning(gradient, memory, entry, step, eta, xp):
    return -eta * xp.where(gradient > 0, gradient, 0.5 * gradient), memory


@pytest.fixture(scope="module")
def general():
    """Both problems of a model in which no two entries are alike, and no gradient is rounding."""
    made = dynamics.Model(start=start, risk=risk)
    return made.ReducedPopulation(made.Parameters()), made.FullPopulation(made.Parameters())


@pytest.mark.parametrize("name", SEVEN)
def test_full_runs_are_those_of_optax(general, name):
    (_, full), (rule, other) = general, SEVEN[name]
    run = dynamics.descend(full, eta=0.01, steps=STEPS, rule=rule, record=[STEPS // 2])
    with jax.enable_x64(True):
        state = jax.numpy.asarray(full.initial_state)
        memory, states = other.init(state), {}
        for step in range(STEPS):
            states[step] = np.asarray(state)
            slope = jax.numpy.asarray(full.gradient(np.asarray(state)))
            change, memory = other.update(slope, memory, state)
            state = optax.apply_updates(state, change)
    size = np.abs(run.states).max()
    assert np.abs(run.final_state - np.asarray(state)).max() < 1e-13 * size
    assert np.abs(run.states[1] - states[STEPS // 2]).max() < 1e-13 * size


BOUNDED = {
    "momentum": dynamics.rule("momentum"),
    "nesterov": dynamics.rule("momentum", nesterov=True),
    "adam": dynamics.rule("adam", eps=0.1),
    "adamw": dynamics.rule("adamw", weight_decay=0.01, eps=0.1),
    "normalized": dynamics.rule("normalized", eps=0.1),
}
"""Rules that divide a gradient by its size amplify its rounding; here eps is too large for that."""
LAWS = {
    "positional_attention": {"D": 8, "C": 2},
    "masked_image_modeling": {
        "family": "custom", "areas": "0,0,0,0,1,1,2,2;0,0,1,1,0,2,0,2", "masked": 4
    },
    "shallow_vit": {
        "M": 4, "m": 12, "d": 4, "L": 43, "alpha_star": 25 / 43, "alpha_confusion": 4 / 43,
        "sigma": 0.0, "delta": 0.0, "noise": 0.0,
    },
}  # fmt: skip


def signed():
    """Opposite entries, one that never moves, and one that decay alone moves."""
    start = lambda u=0.3: {"A": [[u, -u], [-u, u]], "b": [0, 0.7], "c": [0.0, -1, 1]}  # noqa: E731

    def risk(theta, xp):
        a, b, c = theta["A"].ravel(), theta["b"], theta["c"]
        still = xp.array([1.0, 0.0]) @ b + 0.0 * b[1]
        return (a[0] * a[1] * a[2] * a[3] - 1.0) ** 2 + (still + c[1] * c[2] + 2.0) ** 2 + c[0]

    return dynamics.Model(start=start, risk=risk)


QUICK = ("linear_icl", "signed")
DRAWN = ("single_location_gaussian", "statistical_induction_drawn")
"""Models whose law is drawn: its symmetry holds up to sampling errors."""
SLOW = [*(set(dynamics.system_names()) - {"linear_icl", *DRAWN}), SUPPORT / "positional.py"]


@pytest.mark.parametrize(
    "name",
    [*QUICK, *(pytest.param(name, marks=pytest.mark.long) for name in sorted(SLOW, key=str))],
)
def test_reduced_runs_are_those_of_every_entry(name):
    system = dynamics.load_system(signed() if name == "signed" else name)
    parameters = system.Parameters(**LAWS.get(name, {}))
    options = {"start": "symmetric"} if name == "shallow_vit" else {}
    reduced = system.ReducedPopulation(parameters, **options)
    full = system.FullPopulation(parameters, **options)
    linear = {title: rule for title, (rule, _) in SEVEN.items()}
    for title, rule in (linear if name == "linear_icl" else BOUNDED).items():
        if name == "sparse_parity" and rule.decays:
            continue  # it starts on kinks, on whose side under decay rounding decides
        found = dynamics.compare(reduced, full, eta=0.01, steps=300, rule=rule)
        assert found.largest_deviation < (1e-12 if name in QUICK else 1e-11), title


@pytest.mark.parametrize("decay", [0.01, 0.3])
def test_scalars_that_decay_relates_only_at_one_strength_stay_apart(decay):
    """With a constant gradient, c[0] is a function of b[1] that depends on the strength."""
    system = dynamics.load_system(signed())
    views = system.ReducedPopulation, system.FullPopulation
    problems = [make(system.Parameters()) for make in views]
    rule = dynamics.rule("momentum", weight_decay=decay)
    found = dynamics.compare(*problems, eta=0.01, steps=300, rule=rule)
    assert found.reduced.layout.size == 5
    assert found.largest_deviation < 1e-12


def test_signed_classes_part_under_a_rule_that_is_not_odd():
    system = dynamics.Model(
        start=lambda u=0.3: {"A": [[u, -u], [-u, u]]},
        risk=lambda theta, xp: (xp.prod(theta["A"]) - 1.0) ** 2,
    )
    parameters = system.Parameters()
    reduced, full = system.ReducedPopulation(parameters), system.FullPopulation(parameters)
    assert reduced.layout.size == 1
    other = dynamics.compare(reduced, full, eta=0.01, steps=50, rule=leaning)
    assert other.reduced.layout.size == 2
    assert other.largest_deviation < 1e-14


def test_schedules_are_those_of_optax():
    steps = np.arange(200)
    for text, other in {
        "warmup:50": optax.linear_schedule(0.0, 1.0, 50),
        "cosine": optax.cosine_decay_schedule(1.0, 200),
        "cosine:50": optax.warmup_cosine_decay_schedule(0.0, 1.0, 50, 200),
        "staircase:60:0.5": optax.exponential_decay(1.0, 60, 0.5, staircase=True),
        "1/(1+step)": lambda t: 1 / (1 + t),
    }.items():
        expected = [float(other(step)) for step in steps]
        assert schedule_of(text, 200)(steps) == pytest.approx(expected, abs=1e-6)


def test_time_sums_the_rates(general):
    run = dynamics.descend(general[0], 0.01, 100, rule="adam", schedule="warmup:10", record=1)
    rates = 0.01 * np.minimum(1.0, np.arange(100) / 10)
    assert run.time == pytest.approx(np.concatenate([[0.0], np.cumsum(rates)]), rel=1e-14)
    assert (run.states[1] == run.states[0]).all()
    assert (run.states[2] != run.states[1]).all()


def test_an_array_at_rest_keeps_its_memory(general):
    full = general[1]
    stages = [("w", 30), ("v", 20), ("w+v", 50)]
    run = dynamics.descend(full, eta=0.01, steps=100, rule="adam", stages=stages, record=1)
    w, v = run["w"].reshape(101, -1), run["v"]
    assert (v[:31] == v[0]).all()
    assert (w[30:51] == w[30]).all()
    theta, memory, taken = full.initial_state, np.zeros((2, full.layout.size)), 0.0
    moves = {name: full.entries_of(name) for name in ("w", "v")}
    for step in range(100):
        among = moves["w"] if step < 30 else moves["v"] if step < 50 else moves["w"] | moves["v"]
        taken = taken + among
        change, kept = RULES["adam"].apply(
            full.gradient(theta), list(memory), theta, np.maximum(taken, 1), 0.01, np
        )
        theta = theta + np.where(among, change, 0.0)
        memory = np.where(among, kept, memory)
    assert np.abs(run.final_state - theta).max() < 1e-13


def test_the_last_stage_and_the_last_rate_hold_for_the_step_after_a_run(general):
    """One more step says whether the state rests, and is looked at for events."""
    problem, _ = general
    plain = dynamics.descend(problem, eta=0.01, steps=50)
    staged = dynamics.descend(problem, eta=0.01, steps=50, stages=[("w+v", 20), ("w+v", 30)])
    scheduled = dynamics.descend(problem, eta=0.01, steps=50, schedule="1 + 0/(steps - step)")
    for run in (staged, scheduled):
        assert run.outcome == plain.outcome
        assert (run.states == plain.states).all()


def test_events_are_of_the_step_taken():
    """Momentum carries a quantity past the point at which its gradient turns."""
    model = dynamics.Model(
        start=lambda: {"s": 0.0},
        risk=lambda theta, xp: (theta["s"] - 1.0) ** 2 / 2,
        events={"top": "s stops growing"},
    )
    problem = model.ReducedPopulation(model.Parameters())
    run = dynamics.descend(problem, eta=0.01, steps=400, rule="momentum", record=1)
    assert run.events["top"].step == int(np.argmax(run["s"]))
    assert run["s"].max() > 1.1


@pytest.fixture(scope="module")
def tree():
    system = dynamics.load_system(SUPPORT / "causal_tree.py")
    return system, system.Parameters()


def test_adam_leaves_the_classes_where_nothing_is_held(tree, monkeypatch):
    """Steps 0 to 3 of a causal tree: 1e-17, 4e-12, 2e-6, 1e-2; held entries do not move."""
    system, parameters = tree
    full, classes = system.FullPopulation(parameters), system.closure(parameters).classes
    still = classes.labels < 0
    assert still.sum() > 100
    with pytest.warns(dynamics.TrainingWarning, match="adam multiplies them by"):
        held = dynamics.descend(full, eta=0.01, steps=4, rule="adam", record=1)
    assert held.settings["held"] == still.sum()
    assert (held.states[:, still] == held.states[0, still]).all()
    monkeypatch.setattr(type(full), "moving", lambda self, start: np.ones(start.size, dtype=bool))
    with pytest.warns(dynamics.TrainingWarning, match="rounding"):
        free = dynamics.descend(full, eta=0.01, steps=4, rule="adam", record=1)
    off = [np.abs(classes.residual(full.gradient(state))).max() for state in free.states[:4]]
    assert (np.log10(off) > [-18, -13, -8, -4]).all()
    assert (np.log10(off) < [-15, -9, -4, 0]).all()


def test_a_draw_and_another_start_hold_nothing(tree):
    system, parameters = tree
    drawn = system.FullEmpirical(parameters, samples=200, seed=0)
    assert drawn.moving(drawn.initial_state).all()
    full, noise = system.FullPopulation(parameters), np.random.default_rng(0)
    assert not full.moving(full.initial_state).all()
    beside = full.initial_state + 1e-3 * noise.standard_normal(full.layout.size)
    assert full.moving(beside).all()


@pytest.mark.parametrize(("rule", "factor"), [("sign", "1e\\+20"), ("adam", "1e\\+08")])
def test_a_run_says_by_how_much_rounding_is_amplified(rule, factor):
    def risk(theta, xp, far=1e-20):
        a, b = theta["a"], theta["b"]
        return (a[0] * a[1] - 1.0) ** 2 + (b[0] * b[1]) ** 2 + far * b[0]

    system = dynamics.Model(start=lambda: {"a": [0.5, 1.0], "b": [0.0, 0.0]}, risk=risk)
    problem = system.FullPopulation(system.Parameters())
    told = f"of 1 of 4 numbers .* 1e-20 beside 1e.00.* {rule} multiplies them by {factor}"
    with pytest.warns(dynamics.TrainingWarning, match=told):
        run = dynamics.descend(problem, eta=0.01, steps=3, rule=rule)
    assert len(run.remarks) == 1
    for other in ("gd", "momentum", "normalized"):
        assert dynamics.descend(problem, eta=0.01, steps=3, rule=other).remarks == ()
    calm = system.FullPopulation(system.Parameters(far=1e-3))
    assert dynamics.descend(calm, eta=0.01, steps=3, rule=rule).remarks == ()
