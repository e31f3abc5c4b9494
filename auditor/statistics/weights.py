"""How much each witness counts: a short list of weightings, of which the first is the safe one.

Without verified rows the safe one leads; a few verified rows choose among all of them (``choice``).

**Agreement** is the safe one. Two things about a network can be seen without truth. How often the others predict
the class that it predicts: networks that err independently agree where both are right (Dawid and Skene 1979
estimate skill so), but one that is better than all others agrees with them least. And how often it predicts the
given label: that is one more opinion, and accuracy on noisy labels ranks networks as accuracy on true ones does
(Chen, Ye, Chen, Zhao and Heng 2021, "Robustness of Accuracy Metric and its Inspirations in Learning with Noisy
Labels"), unless a network has memorized wrong labels. These show among the labels that the others doubt most
(``Votes.obeys``); they are taken out of its agreement with the labels and also count against it:

    skill = odds(agrees with others) * odds(agrees with labels, beyond memory) ^ 4 * (1 - memorized) ^ 2

All agreement is counted beyond chance (Cohen 1960, "A Coefficient of Agreement for Nominal Scales"): on long tails,
and with few classes, one that always predicts the same class agrees often and knows nothing. A witness whose
predictions say next to nothing about the given labels (constant, or with its classes mixed up) is heard by no rule:
it counts 0 in each, and the others are not compared with it.

Weights are powers of skill: a weak witness must count next to nothing, because it costs more than it brings
(``benchmarks/results/weak_witness.md``). A network far better than the others obeys
labels that they doubt because it is right and they are wrong. So skill is seen twice, with all that is obeyed taken
for memory and with only what no network could know (``Votes.surely_memorized``), and a weight leaves an equal share
only as far as both agree.

**Smoothness** leads where the samples' neighbours in features of a backbone are known and these features know the
classes as well as the witnesses do (``smoothness``). It finds the robust engines under structured noise, where
agreement does not. Where the features do not serve it is a second opinion.

**Separation** leads without features, where witnesses part as under structured noise and one of them sees two
groups of labels (``separation``). One that merges classes sees two groups too, so only those separate that predict
the classes about as often as the labels name them, and each counts by the square of its agreement with the labels.

**The trunk** leads where engines are heads, trained on what one network on the images saw of noisy labels
(``Witness.trunk``). They have its eyes, so that they agree with each other says nothing, and on human errors they
find less than it does (``benchmarks/results/heads.md``). What shows that a head knows more is that it parts from
its trunk: with the same eyes, another order of the labels comes from how it treats labels that do not fit, and that
is what finds structured errors. Its weight, as a multiple of its trunk's, follows from their rank correlation:

    LEAST_HEAD + ((1 - correlation) / PARTED) ^ PARTING

Beside other witnesses a trunk and its heads are one.

The others: **equal** weights, and the witness **alone** that each of the former counts most (all of them alone are
too many for a few rows to choose among: where all rank alike that cost .002 AUROC, by luck).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.statistics.separation import ONE_GROUP, separation
from auditor.statistics.smoothness import alike
from auditor.statistics.witnesses import UNLABELED, Witness, row_chunks

LEAST_SEPARATION = 0.001
"""Separation beyond chance granted to a witness that separates nothing, where another one does."""
FEWEST_VOTERS = 2
"""Witnesses that predict classes, so that each has another to be held against."""
SHARPNESS = 2.5
"""Power of skill that makes a weight. On ten classes it parts witnesses as the cube did of agreement that was not
corrected for chance: on seven sets of 5,000 CIFAR-10 images on features the AUROC moves by .003 at most."""
LEAST_SHARE = 0.1
"""Of an equal share, what skill leaves to anybody before all shares are scaled to sum to 1 (by 1.1 at most)."""
SMOOTH_SCALE = 0.02
"""Nats by which a witness must lead to count e times as much."""
MOST_BEYOND = 0.05
"""``Alike.beyond`` of the middle witness above which the features do not serve: between the .03 of witnesses on
good features and the .07 and more of those on weak ones, on photos unlike what the backbone saw, and of stronger
networks. Of the middle one, because a single engine that memorised says nothing of the features."""
LEAST_FIT = 0.25
"""Of the agreement with given labels beyond chance that the best witness has, what another must reach to count by
its smoothness: one whose classes have lost their meaning is smooth too."""
MOST_MOVED = 0.25
"""Of the predictions, the share that would have to change class until each class is predicted as often as the
labels name it, above which classes are merged: 40 % class-dependent errors on CIFAR-10 move .12, pairs .5."""
LEAST_HEARD = 0.1
"""The same, to be heard at all. Lower, because one that learned the truth under 80 % uniform noise reaches an
eighth of one that memorised the labels."""
MOST_ASKED = 100_000
"""Rows that show whether a witness says anything about the labels."""
LEAST_HEAD = 0.05
"""What a head counts at least, as a multiple of its trunk."""
PARTED = 0.25
"""One less the rank correlation with its trunk at which a head counts as much as it. On 5,000 images of CIFAR-10 it
was .15 at most under human errors, and of L2B's head .20, .32 and .41 under pair flips of 30 %, asymmetric errors
of 40 % and pair flips of 45 % (``benchmarks/results/heads.md``)."""
PARTING = 4
"""Power with which a head counts more the more it parts from its trunk."""
SUREST = 0.05
"""Share of the rows, those on which the others are surest of another class, that show what a witness memorized."""


@dataclass(frozen=True)
class Weighting:
    """One way to weigh the witnesses; needs no verified rows."""

    name: str
    """``agreement``, ``separation``, ``trunk``, ``equal``, ``smoothness`` or ``NAME alone``."""
    weights: Mapping[str, float]
    """By witness, in their order, not negative, summing to 1."""
    why: str

    @property
    def title(self) -> str:
        """As a heading: what leads."""
        if self.name in ("equal", "trunk"):
            return "Equal weights" if self.name == "equal" else "The network on the images leads"
        return (
            f"Only {self.name.removesuffix(' alone')}"
            if self.name.endswith(" alone")
            else f"Weights by {self.name}"
        )


@dataclass(frozen=True, eq=False)
class Votes:
    """How the predicted classes of W witnesses agree with those of the others and with the given labels."""

    with_others: NDArray[np.int64]
    """(W, 2) rows on which the witness predicts the class that all others predict together, and rows where not."""
    with_given: NDArray[np.int64]
    """(W, 2) rows on which it predicts the given label, and rows where not."""
    chance: NDArray[np.float64]
    """(W, 2) in [0, 1]: agreement with the others and with the labels that the classes' shares alone would give."""
    moved: NDArray[np.float64]
    """(W,) in [0, 1]: half of the distance, class by class, from the shares of labels to those of predictions."""
    obeys: NDArray[np.float64]
    """(W,) in [0, 1]: of labels that the others doubt most, the share that the witness predicts nevertheless."""
    others_agree: NDArray[np.float64]
    """(W,) in [0, 1]: of the rows on which the others are as sure, the share that has the label they predict."""

    def skill(self, memorized: NDArray[np.float64]) -> NDArray[np.float64]:
        """(W,) not negative, without a unit, of witnesses that have memorized a share (W,) of the labels."""
        share = _kappa(self.with_given, self.chance[:, 1])
        beyond = np.clip((share - memorized) / np.maximum(1 - memorized, 1e-9), 0.0, 1.0)
        of_others = _odds(np.clip(_kappa(self.with_others, self.chance[:, 0]), 0.0, 1.0), self.with_others)
        return np.asarray(of_others * _odds(beyond, self.with_given) ** 4 * (1 - memorized) ** 2)

    @property
    def fit(self) -> NDArray[np.float64]:
        """(W,) at most 1: agreement with the given labels beyond chance, Cohen's kappa."""
        return _kappa(self.with_given, self.chance[:, 1])

    def surely_memorized(self, noise_rate: float) -> NDArray[np.float64]:
        """(W,) what one obeys beyond what a witness that never errs would, should so many labels be wrong.

        Where the others are as sure, they are right on a share p = others_agree / (1 - noise_rate), so of the
        labels that they doubt there (1 - p)(1 - noise_rate) / (1 - others_agree) are right nevertheless.
        """
        right = 1.0 - noise_rate
        doubted = np.maximum(1.0 - self.others_agree, 1e-9)
        excused = np.clip((right - self.others_agree) / doubted, 0.0, 1.0)
        return np.clip((self.obeys - excused) / np.maximum(1.0 - excused, 1e-9), 0.0, 1.0)


def weightings(
    witnesses: Sequence[Witness],
    given_labels: NDArray[np.integer],
    *,
    parted: bool,
    noise_rate: float,
    neighbours: NDArray[np.integer] | None = None,
    correlations: NDArray[np.floating] | None = None,
) -> tuple[Weighting, ...]:
    """The candidates, the safe one first; at least one.

    Args:
        witnesses: at least one; their predictions may be memory maps, each is read a few times in chunks.
        given_labels: (N,) int in {-1, 0..K-1}.
        parted: two witnesses rank very differently.
        noise_rate: guessed share of wrong labels, in [0, 1].
        neighbours: (N, k) int, each sample's nearest others in features of a backbone, -1 where there is none;
            None without a backbone.
        correlations: (W, W) rank correlations of the witnesses, NaN where unknown; heads part from their trunk by
            them. None: none parts.
    """
    names = [witness.name for witness in witnesses]
    family = _family_of(witnesses, correlations)
    outer = [witness for witness in witnesses if witness.name not in family.heads]
    outer_names = [witness.name for witness in outer]
    voters = [witness for witness in outer if witness.pred_probs is not None]
    seen = votes(voters, given_labels) if len(voters) >= FEWEST_VOTERS else None
    found: list[Weighting] = []
    speakers = [witness for witness in witnesses if witness.pred_probs is not None]
    if parted and neighbours is None and len(speakers) >= FEWEST_VOTERS:
        all_seen = votes(speakers, given_labels) if family.heads or seen is None else seen
        found += _by_separation(names, speakers, all_seen, given_labels)
    if seen is not None:
        found.append(family.joins(_by_agreement(outer_names, voters, seen, noise_rate)))
        if neighbours is not None:
            smooth, they_serve = _by_smoothness(outer_names, voters, seen, given_labels, neighbours)
            found.insert(0 if they_serve else 1, family.joins(smooth))
    elif family.heads:
        same = dict.fromkeys(outer_names, 1.0 / len(outer_names))
        found.append(family.joins(Weighting("trunk", same, "")))
    found.append(Weighting("equal", dict.fromkeys(names, 1.0 / len(names)), "every witness counts the same."))
    heaviest = [max(one.weights, key=one.weights.__getitem__) for one in found[:-1]]
    for name in dict.fromkeys([*heaviest, *family.parted]):
        alone = {other: float(other == name) for other in names}
        found.append(Weighting(f"{name} alone", alone, f"{name} alone ranks."))
    return tuple(found)


def say_nothing(witnesses: Sequence[Witness], given_labels: NDArray[np.integer]) -> list[str]:
    """Names of the witnesses whose predicted classes say next to nothing about the given labels; never all of them.

    Args:
        witnesses: those without ``pred_probs`` are not judged.
        given_labels: (N,) int in {-1, 0..K-1}; at most ``MOST_ASKED`` of the labeled rows, evenly
            spaced, are asked.
    """
    labeled = np.flatnonzero(given_labels != UNLABELED)
    rows = labeled[:: max(1, -(-len(labeled) // MOST_ASKED))]
    given = np.asarray(given_labels)[rows]
    fits = {}
    for witness in witnesses:
        if witness.pred_probs is not None:
            probs = np.asarray(witness.pred_probs[rows])
            spoken = np.isfinite(probs).all(axis=1)
            says, label = probs[spoken].argmax(axis=1), given[spoken]
            shares = [np.bincount(one, minlength=probs.shape[1]) / max(1, len(one)) for one in (says, label)]
            hits = np.array([_split(says == label)])
            fits[witness.name] = float(_kappa(hits, np.array([shares[0] @ shares[1]]))[0])
    best = max(fits.values(), default=0.0)
    return [name for name, fit in fits.items() if best > 0 and fit < LEAST_HEARD * best]


def with_unheard(weighting: Weighting, unheard: Sequence[str], names: Sequence[str]) -> Weighting:
    """The weighting of those that are heard, with 0 for the others, in the order of ``names``."""
    weights = {name: weighting.weights.get(name, 0.0) for name in names}
    why = f"Not heard, because what it predicts says nothing about the labels: {', '.join(unheard)}."
    return Weighting(
        weighting.name, weights, f"{weighting.why.replace('every witness counts', 'all others count')} {why}"
    )


@dataclass(frozen=True)
class _Family:
    """A network and the heads that were trained on what it saw; no heads where there are none."""

    names: tuple[str, ...]
    """Of all witnesses, in their order."""
    trunk: str
    heads: Mapping[str, float]
    """What each counts, as a multiple of the trunk."""
    parted: tuple[str, ...]
    """Heads that rank the labels so differently that they count as much as the trunk."""

    def joins(self, weighting: Weighting) -> Weighting:
        """The same weighting with the trunk's weight shared out among the family."""
        if not self.heads:
            return weighting
        one = weighting.weights[self.trunk] / (1.0 + sum(self.heads.values()))
        weights = (
            dict(weighting.weights) | {self.trunk: one} | {name: one * by for name, by in self.heads.items()}
        )
        together = sum(self.heads.values()) / (1.0 + sum(self.heads.values()))
        why = (
            f"engines that were trained on what {self.trunk} sees count by how differently they rank, "
            f"which shows structured errors; {together:.0%} of its weight is theirs"
        )
        if self.parted:
            why += (
                f", for {' and '.join(self.parted)} {'rank' if self.parted[1:] else 'ranks'} very differently"
            )
        in_order = {name: weights[name] for name in self.names}
        return Weighting(weighting.name, in_order, f"{weighting.why} {why}.".strip())


def _family_of(witnesses: Sequence[Witness], correlations: NDArray[np.floating] | None) -> _Family:
    """The trunk with most heads, where it is a witness too: engines of an audit have one."""
    names = tuple(witness.name for witness in witnesses)
    trunks = [witness.trunk for witness in witnesses if witness.trunk in names]
    if not trunks:
        return _Family(names, "", {}, ())
    trunk = max(dict.fromkeys(trunks), key=trunks.count)
    own = np.ones(len(names)) if correlations is None else correlations[names.index(trunk)]
    beyond = np.clip(1.0 - np.nan_to_num(own, nan=1.0), 0.0, None) / PARTED
    heads = {
        witness.name: LEAST_HEAD + float(beyond[number]) ** PARTING
        for number, witness in enumerate(witnesses)
        if witness.trunk == trunk
    }
    return _Family(names, trunk, heads, tuple(name for name, by in heads.items() if by > 1.0))


def _by_separation(
    names: Sequence[str], voters: Sequence[Witness], seen: Votes, given_labels: NDArray[np.integer]
) -> list[Weighting]:
    """Nothing where no witness separates the labels into two groups."""
    found = np.array([separation(voter, given_labels) for voter in voters]) - ONE_GROUP
    found[seen.moved > MOST_MOVED] = 0.0
    if found.max() <= 0:
        return []
    shares = np.maximum(found, LEAST_SEPARATION) * (seen.fit / seen.fit.max()) ** 2
    weights = _shares(names, dict(zip((voter.name for voter in voters), shares.tolist(), strict=True)))
    why = (
        "the witnesses disagree, so a witness counts more if it separates the labels into two groups and agrees "
        "with them; "
        f"{_heaviest(weights)}."
    )
    return [Weighting("separation", weights, why)]


def _by_agreement(
    names: Sequence[str], voters: Sequence[Witness], seen: Votes, noise_rate: float
) -> Weighting:
    shares = _agreement_shares(seen, noise_rate)
    weights = _shares(names, dict(zip((voter.name for voter in voters), shares.tolist(), strict=True)))
    floor = LEAST_SHARE / len(names)
    weights = _shares(names, {name: max(weight, floor) for name, weight in weights.items()})
    why = (
        "a witness counts more if the others and the given labels agree with its predictions, without the "
        f"labels that it memorised; {_heaviest(weights)}."
    )
    return Weighting("agreement", weights, why)


def _by_smoothness(
    names: Sequence[str],
    voters: Sequence[Witness],
    seen: Votes,
    given_labels: NDArray[np.integer],
    neighbours: NDArray[np.integer],
) -> tuple[Weighting, bool]:
    """The weighting, and whether the features serve, so that it may lead."""
    found = [alike(voter, given_labels, neighbours) for voter in voters]
    nats = np.array([one.nats for one in found])
    fit = np.clip(seen.fit, 0.0, None)
    means_classes = (fit >= LEAST_FIT * fit.max()) & np.isfinite(nats)
    middle = sorted(one.beyond for one in found)[len(found) // 2]
    they_serve = bool(means_classes.any()) and middle <= MOST_BEYOND
    if not means_classes.any():
        means_classes[:] = True
        nats[:] = 0.0
    behind = nats - nats[means_classes].min()
    shares = np.where(means_classes, np.exp(-np.maximum(behind, 0.0) / SMOOTH_SCALE), 0.0)
    weights = _shares(names, dict(zip((voter.name for voter in voters), shares.tolist(), strict=True)))
    why = (
        "a witness counts more if it predicts the same for samples that look alike, and labels follow from it; "
        f"{_heaviest(weights)}."
    )
    return Weighting("smoothness", weights, why), they_serve


def votes(witnesses: Sequence[Witness], given_labels: NDArray[np.integer]) -> Votes:
    """Count where each witness predicts what the others predict together, and what the label says.

    The others predict the class of their highest mean probability. Rows without a label count nothing, nor do rows
    on which the witness or all others have no opinion.

    Args:
        witnesses: W of them, all with ``pred_probs`` (N, K).
        given_labels: (N,) int in {-1, 0..K-1}.
    """
    arrays = [witness.pred_probs for witness in witnesses if witness.pred_probs is not None]
    with_others = np.zeros((len(arrays), 2), dtype=np.int64)
    with_given = np.zeros_like(with_others)
    num_classes = arrays[0].shape[1]
    # How often each predicts every class, beside how often the others do and the labels say it.
    counts = np.zeros((len(arrays), 2, 2, num_classes), dtype=np.int64)
    looks: list[list[NDArray[np.float32]]] = [[] for _ in arrays]
    for rows in row_chunks(len(given_labels), len(arrays) * arrays[0].shape[1]):
        given = np.asarray(given_labels[rows])
        labeled = given != UNLABELED
        given = given[labeled]
        probs = np.stack(
            [np.asarray(array[rows], dtype=np.float32)[labeled] for array in arrays]
        )  # (W, n, K)
        spoken = np.isfinite(probs).all(axis=2)
        probs[~spoken] = 0.0
        for number, own in enumerate(probs):
            judged = spoken[number] & (spoken.sum(axis=0) > 1)
            others = np.delete(probs, number, axis=0).sum(axis=0)[judged]
            says, label = own[judged].argmax(axis=1), given[judged]
            with_others[number] += _split(says == others.argmax(axis=1))
            with_given[number] += _split(says == label)
            for beside, classes in enumerate((others.argmax(axis=1), label)):
                counts[number, beside, 0] += np.bincount(says, minlength=num_classes)
                counts[number, beside, 1] += np.bincount(classes, minlength=num_classes)
            agree = others.argmax(axis=1) == label
            looks[number].append(np.stack([_sureness(others), agree, says == label]).astype(np.float32))
    shares = [_on_doubted(*np.concatenate(parts, axis=1)) for parts in looks]
    parts_of = counts / np.maximum(counts.sum(axis=3, keepdims=True), 1)
    chance = parts_of.prod(axis=2).sum(axis=2)
    moved = np.abs(parts_of[:, 1, 0] - parts_of[:, 1, 1]).sum(axis=1) / 2
    return Votes(with_others, with_given, chance, moved, *np.array(shares).T)


def _agreement_shares(seen: Votes, noise_rate: float) -> NDArray[np.float64]:
    """(W,) powers of skill as shares, each moved from an equal share only as far as both views of memory agree."""
    equal = np.full(len(seen.obeys), 1 / len(seen.obeys))
    views = [equal]
    for memorized in (seen.obeys, seen.surely_memorized(noise_rate)):
        skill = seen.skill(memorized)
        sharp = (skill / max(skill.max(), 1e-300)) ** SHARPNESS  # powers of skills themselves may overflow
        views.append(sharp / sharp.sum() if sharp.sum() > 0 else equal)
    return np.asarray(np.median(views, axis=0))


def _kappa(counts: NDArray[np.int64], chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """(W,) share of the rows (W, 2) that agree, beyond chance (W,); the bare share where all is of one class."""
    share = counts[:, 0] / np.maximum(counts.sum(axis=1), 1)
    return np.where(chance < 1.0, (share - chance) / np.maximum(1.0 - chance, 1e-9), share)


def _odds(share: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """(W,) of shares (W,) of so many rows; one of each kind is added, so that they stay finite."""
    num = counts.sum(axis=1)
    return np.asarray((share * num + 1) / ((1 - share) * num + 1))


def _split(hits: NDArray[np.bool_]) -> tuple[int, int]:
    return int(hits.sum()), int((~hits).sum())


def _sureness(probs: NDArray[np.float32]) -> NDArray[np.float32]:
    """(n,) share of the (n, K) mass that the best class has more than the second, in [0, 1]."""
    if probs.shape[1] < 2:
        return np.ones(len(probs), np.float32)
    second, best = np.partition(probs, -2, axis=1)[:, -2:].T
    return np.asarray((best - second) / np.maximum(probs.sum(axis=1), 1e-12))


def _on_doubted(
    sureness: NDArray[np.float32], agree: NDArray[np.float32], obeys: NDArray[np.float32]
) -> tuple[float, float]:
    """What one obeys of the most doubted labels, and how often the others agree with labels if they are as sure."""
    doubted = np.flatnonzero((agree == 0) & (sureness > 0))
    if not len(doubted):
        return 0.0, 1.0
    num = min(len(doubted), max(1, round(SUREST * len(sureness))))
    least = np.partition(sureness[doubted], -num)[-num]
    surest = doubted[sureness[doubted] >= least]
    return float(obeys[surest].mean()), float(agree[sureness >= least].mean())


def _shares(names: Sequence[str], known: Mapping[str, float]) -> dict[str, float]:
    """Shares that sum to 1; whoever brings no predictions weighs as the others do on average."""
    usual = sum(known.values()) / len(known)
    raw = {name: known.get(name, usual) for name in names}
    return {name: value / sum(raw.values()) for name, value in raw.items()}


def _heaviest(weights: Mapping[str, float]) -> str:
    best = max(weights, key=weights.__getitem__)
    return f"{best} most, with {weights[best]:.0%}"
