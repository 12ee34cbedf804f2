#!/usr/bin/env python3
"""Searches series for change points by apache-otava with its defaults.

It reads a JSON list of series, and writes a JSON list with the indexes of the changes of each. hack/stat-peers.sh makes
the environment that it runs in.
"""
import json
import sys

from otava.analysis import compute_change_points
from otava.series import AnalysisOptions

options = AnalysisOptions()
changes = []
for series in json.load(sys.stdin):
    found, _ = compute_change_points(series, window_len=options.window_len, max_pvalue=options.max_pvalue,
                                     min_magnitude=options.min_magnitude)
    changes.append([int(point.index) for point in found])
json.dump({"parameters": options.to_json(), "changes": changes}, sys.stdout)
