#!/bin/sh
# The parser: called with the name of rounds.csv, it prints metrics, one JSON object a line. docs/format/parser.md has
# all members. With "time" a value is a point of a series, without it a figure of the whole run. A "warning" is shown
# with the figures.
#
# A line: begin,end,"SET","rps","avg","min","p50","p95","p99","max"
exec awk -F, '
    { gsub(/"/, "") }
    NF == 10 {
        printf "{\"metric\": \"set.rps\", \"unit\": \"1/s\", \"better\": \"higher\", \"value\": %s, \"time\": %s}\n", $4, $1
        printf "{\"metric\": \"set.p99\", \"unit\": \"ns\", \"kind\": \"level\", \"better\": \"lower\", \"value\": %.0f, \"time\": %s}\n",
            $9 * 1e6, $1
        rounds++; rps += $4; mean += $5
    }
    $1 == "end" { complete = 1 }
    END {
        if (!complete) print "{\"warning\": \"rounds.csv has no end: figures are of a part of the run\"}"
        if (!rounds) exit
        printf "{\"metric\": \"set.rps\", \"unit\": \"1/s\", \"better\": \"higher\", \"value\": %.0f}\n", rps / rounds
        printf "{\"metric\": \"set.mean\", \"unit\": \"ns\", \"kind\": \"level\", \"better\": \"lower\", \"value\": %.0f}\n",
            mean / rounds * 1e6
    }' "$1"
