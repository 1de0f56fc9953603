"""The chapter's printed figures beside those that this package computes now."""

from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from companion import ablation_lines, bandit, jax_ppo, trpo_example
from companion.ablation import AblationSettings
from companion.ablation_records import reference
from companion.mdp import random_mdp
from companion.mirror import optimal_return
from companion.mirror_example import comparison, gap_as_printed
from companion.sampling import effective_sample_share
from companion.show import matching, printed

Row = tuple[str, Sequence[str], Sequence[str]]  # what it is, in print, computed; "" where neither


def markdown() -> str:
    """The tables in MyST, each computed when this is called."""
    return "\n".join([*_step(), *_trpo(), *_bandit(), *_ablation(), *_jax(), *_mirror()])


def _table(title: str, where: str, header: Sequence[str], rows: Sequence[Row]) -> list[str]:
    book, ours = ([entry for row in rows for entry in row[i] if entry] for i in (1, 2))
    lines = [
        *(f"## {title}", ""),
        *(f"Equal entries: {matching(ours, book)}. Computed by {where}.", ""),
        f"| Entry | Source | {' | '.join(header)} |",
        "|---|---|" + "---:|" * len(header),
    ]
    for name, entries, computed in rows:
        cells = [
            new if new == old else f"**{new} differs**"
            for old, new in zip(entries, computed, strict=True)
        ]
        lines.append(f"| {name} | chapter | {' | '.join(entries)} |")
        lines.append(f"| | computed | {' | '.join(cells)} |")
    return [*lines, ""]


def _step() -> list[str]:
    book = printed("step")
    functions = {"sigmoid": expit, "slope": lambda t: expit(t) * expit(-t)}
    points = list(book["sigmoid"])
    rows = []
    for name, function in functions.items():
        entries = [book[name].get(t, "") for t in points]
        decimals = [len(entry.partition(".")[2]) for entry in entries]
        computed = [
            f"{function(float(t)):.{d}f}" if d else ""
            for t, d in zip(points, decimals, strict=True)
        ]
        rows.append((f"{name} at theta", entries, computed))
    return _table("Step size", "`scipy.special.expit`", [f"theta = {t}" for t in points], rows)


def _trpo() -> list[str]:
    book, example = printed("trpo"), trpo_example.run()
    errors: dict[str, str] = book["cg_relative_error"]
    computed = [f"{example.relative_error[int(j) - 1]:.1e}" for j in errors]
    cg = [("relative error after j iterations", list(errors.values()), computed)]
    natural, vanilla, search = example.natural, example.vanilla, example.search
    steps = {
        "natural_gradient_10_cg": [natural.predicted_gain, natural.gain, natural.kl],
        "vanilla_gradient": [vanilla.predicted_gain, vanilla.gain, vanilla.kl],
    }
    rows = [
        (
            name.replace("_10_cg", ", 10 iterations").replace("_", " "),
            [*book[name].values(), ""],
            [*(f"{value:.4f}" for value in values), ""],
        )
        for name, values in steps.items()
    ]
    after = book["line_search"]
    rows.append(
        (
            "after the line search",
            ["", after["gain"], after["kl"], str(after["halvings"])],
            ["", f"{search.gain:.4f}", f"{search.kl:.4f}", str(search.halvings)],
        )
    )
    ends = [f"{example.eigenvalues[i]:.2f}" for i in (0, -1)]
    network: Row = (
        "this network",
        [*book["damped_fisher_eigenvalues"], str(book["parameters"])],
        [*ends, str(example.parameters)],
    )
    where = "[companion.trpo_example](../api/companion.trpo_example.md)"
    return [
        *_table(
            "The TRPO step: the damped Fisher matrix",
            where,
            ["smallest eigenvalue", "largest eigenvalue", "parameters"],
            [network],
        ),
        *_table("The TRPO step: conjugate gradient", where, [f"j = {j}" for j in errors], cg),
        *_table(
            "The TRPO step: predicted and actual",
            where,
            ["predicted gain", "gain", "mean KL (nats)", "halvings"],
            rows,
        ),
    ]


def _bandit() -> list[str]:
    book = printed("bandit")
    methods: dict[bandit.Method, str] = {
        "none": "no clipping",
        "clip": "clipped",
        "kl": "KL penalty",
    }
    lines = []
    for method, name in methods.items():
        records = bandit.run(bandit.BanditSettings(method=method))
        computed = bandit.printed_columns(records, book["epochs"])
        rows = [(key, entries, computed[key]) for key, entries in book["methods"][name].items()]
        where = "[companion.bandit](../api/companion.bandit.md)"
        header = [f"epoch {epoch}" for epoch in book["epochs"]]
        lines += _table(f"The bandit: {name}", where, header, rows)
    return lines


def _ablation() -> list[str]:
    book, runs = printed("ablation")["torch"], reference()
    ours = ablation_lines.printed_lines(runs["clipped"], runs["no clip"])
    where = "[companion.ablation_lines](../api/companion.ablation_lines.md), from stored runs"
    single = [name for name in ours if not isinstance(ours[name], dict)]
    rows: list[Row] = [
        (name.replace("_", " "), [str(book[name])], [str(ours[name])]) for name in single
    ]
    pairs: list[Row] = [
        (name.replace("_", " "), list(book[name].values()), list(ours[name].values()))
        for name in ours
        if name not in [*single, "minibatch"]
    ]
    counted = ours["minibatch"]
    minibatch: Row = (
        "seed 1, first batch",
        [str(x) for x in book["minibatch"].values()],
        [str(counted[name]) for name in book["minibatch"]],
    )
    header = [name.replace("_", " ") for name in book["minibatch"]]
    return [
        *_table("The ablation", where, ["value"], rows),
        *_table("The ablation: with and without the clip", where, ["clipped", "no clip"], pairs),
        *_table("The ablation: full batch and minibatches", where, header, [minibatch]),
    ]


def _jax() -> list[str]:
    book = printed("ablation")["jax"]
    stale = [
        jax_ppo.stale_ratios(AblationSettings(ablation_lines.STALENESS_SEED, clip))
        for clip in (0.2, None)
    ]
    counted = jax_ppo.minibatches(AblationSettings(ablation_lines.MINIBATCH_SEED))
    kls = [f"{kl:.3f}" for kl in (counted.kl_full_batch, counted.kl_minibatches)]
    ess: Row = (
        f"ess after {len(stale[0])} epochs",
        list(book["ess_after_20_epochs"].values()),
        [f"{effective_sample_share(ratios[-1]):.0%}" for ratios in stale],
    )
    steps: Row = ("batch steps", [str(book["batch_steps"]), ""], [str(stale[0].shape[1]), ""])
    minibatch: Row = (
        "seed 1, first batch",
        [str(x) for x in book["minibatch"].values()],
        [*map(str, counted[:3]), *kls],
    )
    where = "[companion.jax_ppo](../api/companion.jax_ppo.md)"
    header = [name.replace("_", " ") for name in book["minibatch"]]
    return [
        *_table("The ablation in JAX: first batches", where, ["clipped", "no clip"], [ess, steps]),
        *_table("The ablation in JAX: full batch and minibatches", where, header, [minibatch]),
    ]


def _mirror() -> list[str]:
    book, mdp = printed("mirror"), random_mdp(rng=np.random.default_rng(0))
    gaps = comparison(mdp)
    lines = []
    for start in ("uniform", "poor"):
        rows = []
        for row in book["rows"]:
            if row["start"] == start:
                gap = gaps[row["method"], start]
                computed = [gap_as_printed(gap[k]) for k in book["k"]]
                rows.append((row["method"], row["gap"], computed))
        where = "[companion.mirror_example](../api/companion.mirror_example.md)"
        header = [f"k = {k}" for k in book["k"]]
        lines += _table(f"Mirror descent: gap from the {start} start", where, header, rows)
    optimum: Row = ("this MDP", [book["optimal_value"]], [f"{optimal_return(mdp):.3f}"])
    where = "[companion.mirror](../api/companion.mirror.md)"
    return lines + _table("Mirror descent: the optimum", where, ["optimal value"], [optimum])
