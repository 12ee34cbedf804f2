#!/usr/bin/env python3
"""Writes the golden values of internal/stats (testdata/*.json) from SciPy.

    python3 -m venv venv && venv/bin/pip install -r hack/golden/requirements.txt
    venv/bin/python hack/golden/golden.py

Run it from the root of the repository. The tests only read what it wrote. What SciPy does not have (intervals of
Hodges and Lehmann, the runs test, first runs, MSER-5) is enumerated here by its definition.
"""
import itertools
import json
import math
import pathlib

import numpy as np
from scipy import stats

ALL = stats.PermutationMethod(n_resamples=10**9)  # more than there are: all of them
rng = np.random.default_rng(20231104)


def draw(n, digits=None, shift=0.0, spread=0.2):
    """n log-normal values; rounded to few digits they have ties."""
    x = 100 * np.exp(shift + spread * rng.standard_normal(n))
    return x if digits is None else np.maximum(1, np.round(x, digits))


def write(package, name, data):
    path = pathlib.Path("internal/stats", package, "testdata", name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=None, default=lambda a: a.tolist()).replace('}, {', '},\n{') + "\n")


def describe():
    for n, digits in [(1, None), (2, None), (5, 0), (6, None), (10, 0), (25, None), (40, -1)]:
        x = draw(n, digits)
        c = {"values": x, "mean": x.mean(), "median": np.median(x), "min": x.min(), "max": x.max()}
        if n > 1:
            c |= {"sd": x.std(ddof=1), "cvMean": stats.variation(x, ddof=1), "cvMedian": x.std(ddof=1) / np.median(x)}
        if n >= 6:
            i = stats.quantile_test(x, q=np.median(x), p=0.5).confidence_interval(0.95)
            c |= {"low": i.low, "high": i.high}
        yield c


def signed_rank():
    for n, digits in [(1, None), (5, None), (6, None), (8, 0), (10, -1), (12, 0), (20, None), (50, None)]:
        d = np.round(draw(n, digits) - draw(n, digits, 0.1), 9)
        exact_by_table = digits is None
        r = stats.wilcoxon(d, zero_method="pratt", method="exact" if exact_by_table else ALL)
        yield {"values": d, "p": r.pvalue}
    for n, digits in [(60, 0), (200, -1)]:
        d = draw(n, digits) - draw(n, digits, 0.05)
        yield {"values": d, "p": stats.wilcoxon(d, zero_method="pratt", correction=True, method="asymptotic").pvalue}


def mann_whitney():
    for n, m, digits in [(1, 1, None), (4, 4, None), (5, 7, None), (5, 6, -1), (7, 7, 0), (8, 6, -1), (20, 20, None),
                         (50, 50, None), (50, 11, None)]:
        a, b = draw(n, digits), draw(m, digits, 0.15)
        r = stats.mannwhitneyu(b, a, method="exact" if digits is None else ALL)
        yield {"a": a, "b": b, "u": r.statistic, "p": r.pvalue}
    for n, m, digits in [(51, 60, None), (80, 70, -1)]:
        a, b = draw(n, digits), draw(m, digits, 0.05)
        r = stats.mannwhitneyu(b, a, method="asymptotic", use_continuity=True)
        yield {"a": a, "b": b, "u": r.statistic, "p": r.pvalue}


def several():
    for sizes, digits in [((3, 4, 3), None), ((5, 5, 5), -1), ((4, 6), None), ((25, 20, 22), 0),
                          ((30, 40, 30, 35), -1)]:
        s = [draw(n, digits, 0.05 * i) for i, n in enumerate(sizes)]
        r = stats.kruskal(*s)
        exact = None
        if len(sizes) == 2:
            exact = stats.permutation_test(s, lambda *x: stats.kruskal(*x).statistic, n_resamples=10**6,
                                           alternative="greater").pvalue
        yield {"test": "kruskal", "samples": s, "statistic": r.statistic, "p": r.pvalue, "exact": exact}
    for n, k, digits in [(4, 3, None), (5, 3, -1), (25, 3, 0), (20, 5, None)]:
        x = np.array([draw(k, digits) + 5 * np.arange(k) for _ in range(n)])
        r = stats.friedmanchisquare(*x.T)
        exact = None
        if n == 4:
            orders = list(itertools.permutations(range(k)))
            as_great = [stats.friedmanchisquare(*np.array([row[list(o)] for row, o in zip(x, c)]).T).statistic >=
                        r.statistic - 1e-9 for c in itertools.product(orders, repeat=n)]
            exact = np.mean(as_great)
        yield {"test": "friedman", "samples": x, "statistic": r.statistic, "p": r.pvalue, "exact": exact}


def cut(statistics, level):
    """The greatest k with P(statistic < k) <= (1 - level) / 2."""
    k, (values, counts) = 0, np.unique(statistics, return_counts=True)
    below = dict(zip(values, np.cumsum(counts) / counts.sum()))
    while below[k] <= (1 - level) / 2 + 1e-12:
        k += 1
    return k


def ends(sorted_logs, k):
    r = {"ratio": math.exp(np.median(sorted_logs))}
    return r | ({"low": math.exp(sorted_logs[k - 1]), "high": math.exp(sorted_logs[-k])} if k else {})


def ratios():
    """Estimates of Hodges and Lehmann with intervals from the enumerated distributions."""
    for n, level in [(1, 0.9), (4, 0.9), (5, 0.9), (6, 0.95), (10, 0.95), (13, 0.9)]:
        a, b = draw(n), draw(n, None, 0.1)
        d = np.log(b / a)
        walsh = np.sort([(d[i] + d[j]) / 2 for i in range(n) for j in range(i, n)])
        w = [sum((i + 1) * s for i, s in enumerate(signs)) for signs in itertools.product((0, 1), repeat=n)]
        yield {"paired": True, "a": a, "b": b, "level": level} | ends(walsh, cut(w, level))
    for n, m, level in [(1, 1, 0.9), (3, 3, 0.9), (4, 4, 0.95), (6, 8, 0.95), (7, 7, 0.9)]:
        a, b = draw(n), draw(m, None, 0.1)
        diff = np.sort([math.log(y) - math.log(x) for x in a for y in b])
        u = [sum(c) - n * (n - 1) // 2 for c in itertools.combinations(range(n + m), n)]
        yield {"paired": False, "a": a, "b": b, "level": level} | ends(diff, cut(u, level))


def bimodal():
    """The least share of the sum of squares within two groups, each of a fifth of the values and three or more."""
    for n, digits in [(10, None), (20, -1), (51, None)]:
        for x in (draw(n, digits), np.concatenate([draw(n // 2, digits), draw(n - n // 2, digits, 1.0)])):
            s, least = np.sort(x), max(3, math.ceil(n / 5))
            within = min(k * s[:k].var() + (n - k) * s[k:].var() for k in range(least, n - least + 1))
            yield {"values": x, "within": within / (n * s.var())}


def runs_p(signs):
    count = lambda s: 1 + sum(a != b for a, b in zip(s, s[1:]))
    seen, n, k = count(signs), len(signs), sum(signs)
    every = [count([i in c for i in range(n)]) for c in itertools.combinations(range(n), k)]
    return min(1, 2 * min(np.mean([r <= seen for r in every]), np.mean([r >= seen for r in every])))


def runs():
    for x in (draw(8), draw(11), np.arange(12.0), np.array([1.0, 9, 2, 8, 1, 9, 2, 7, 1, 8]), draw(13, -1)):
        kept = x[x != np.median(x)]
        centred = x - x.mean()
        yield {"values": x, "p": runs_p(list(kept > np.median(x))),
               "lag1": (centred[1:] * centred[:-1]).sum() / (centred**2).sum()}


def firsts():
    for shape, digits in [((5, 5, 5, 5), None), ((5, 4, 3), -1), ((3, 3), 0)]:
        metrics = [[draw(r, digits) for r in shape] for _ in range(3)]
        for o in metrics[0]:
            o[0] = min(o) - 1
        z = []
        for m in metrics:
            r = [stats.rankdata(o) - (len(o) + 1) / 2 for o in m]
            sd = math.sqrt(sum((o**2).mean() for o in r))
            z.append([o / sd for o in r])
        total = np.array([[abs(sum(o[j] for o, j in zip(m, c))) for m in z]
                          for c in itertools.product(*map(range, shape))])
        seen = total[0]
        yield {"metrics": metrics, "p": (total >= seen - 1e-9).mean(0),
               "adjusted": (total.max(1)[:, None] >= seen - 1e-9).mean(0)}


def mser():
    for rise in (0, 30, 200):
        x = np.concatenate([draw(rise, None, 0.5), draw(200)])
        z = x[:len(x) // 5 * 5].reshape(-1, 5).mean(1)
        k = len(z)
        d = min(range(k - 4), key=lambda d: z[d:].var() / (k - d))
        yield {"values": x, "truncate": 5 * d, "ok": 2 * d <= k}


def splits():
    """The best split by energy distance of logarithms, from SciPy's of two samples."""
    for n, shift in [(10, 0.0), (30, 0.3), (57, 0.1)]:
        x = np.concatenate([draw(n // 2), draw(n - n // 2, None, shift)])
        log = np.log(x)
        mean = np.abs(log[:, None] - log).mean()
        q = {t: t * (n - t) / n * stats.energy_distance(log[:t], log[t:])**2 / mean for t in range(5, n - 4)}
        best = max(q, key=q.get)
        yield {"values": x, "at": best, "q": q[best]}


write("", "describe.json", list(describe()))
write("rank", "signed_rank.json", list(signed_rank()))
write("rank", "mann_whitney.json", list(mann_whitney()))
write("rank", "several.json", list(several()))
write("rank", "ratios.json", list(ratios()))
write("precision", "bimodal.json", list(bimodal()))
write("series", "runs.json", list(runs()))
write("series", "firsts.json", list(firsts()))
write("series", "mser.json", list(mser()))
write("changepoint", "splits.json", list(splits()))
