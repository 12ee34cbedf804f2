#!/bin/sh
# The parser: called with the name of rounds.txt, it prints metrics, one JSON object a line. docs/format/parser.md has
# all members. With "time" a value is a point of a series, without it a figure of the whole run. A "warning" is shown
# with the figures.
exec awk '
    NF == 3 && $2 - $1 > 0 {
        printf "{\"metric\": \"write.bandwidth\", \"unit\": \"B/s\", \"better\": \"higher\", \"value\": %.0f, \"time\": %s}\n",
            $3 / ($2 - $1), $1
        rounds++; bytes += $3; seconds += $2 - $1
    }
    $1 == "end" { complete = 1 }
    END {
        if (!complete) print "{\"warning\": \"rounds.txt has no end: figures are of a part of the run\"}"
        if (!rounds) exit
        printf "{\"metric\": \"write.bandwidth\", \"unit\": \"B/s\", \"better\": \"higher\", \"value\": %.0f}\n", bytes / seconds
        printf "{\"metric\": \"rounds\", \"unit\": \"1\", \"kind\": \"quantity\", \"better\": \"higher\", \"value\": %d}\n", rounds
        printf "{\"metric\": \"round.mean\", \"unit\": \"ns\", \"kind\": \"level\", \"better\": \"lower\", \"value\": %.0f}\n",
            seconds / rounds * 1e9
    }' "$1"
