package study

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/bounded"
)

// large is a design of nine cells in six blocks, of a study with a seed or, where
// that is empty, without one.
func large(t *testing.T, seed string, o Options) *Design {
	t.Helper()
	text := strings.Replace(file, "  seed: 7\n", seed, 1)
	o.Blocks = 6
	o.Factors = lists(map[string][]v1alpha1.Var{"fio.bs": {"4k", "64k", "1m"}, "fio.rw": {"read", "write", "rw"}})
	d, err := New(loaded(t, text), o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// cellsOf lists the cells of each block, in their order.
func cellsOf(d *Design) [][]int {
	blocks := make([][]int, 6)
	for _, trial := range d.Trials {
		blocks[trial.Repetition-1] = append(blocks[trial.Repetition-1], trial.Cell)
	}
	return blocks
}

// TestOrder: each block has every cell once, blocks follow one another and differ
// in their order, which follows from the seed alone.
func TestOrder(t *testing.T) {
	d := large(t, "  seed: 7\n", Options{})
	n := len(d.Cells)
	var all []int
	for c := range n {
		all = append(all, c)
	}
	blocks, distinct := cellsOf(d), map[string]bool{}
	for r, block := range blocks {
		distinct[fmt.Sprint(block)] = true
		if !slices.Equal(slices.Sorted(slices.Values(block)), all) {
			t.Errorf("repetition %d has cells %v", r+1, block)
		}
		for _, trial := range d.Trials[r*n : (r+1)*n] {
			if trial.Repetition != r+1 {
				t.Errorf("trial %s is in block %d", trial.Name, r+1)
			}
		}
	}
	if len(distinct) < 6 || distinct[fmt.Sprint(all)] {
		t.Errorf("the blocks are not shuffled each by itself: %v", blocks)
	}
	if diff := cmp.Diff(blocks, cellsOf(large(t, "  seed: 7\n", Options{Seed: 99}))); diff != "" {
		t.Errorf("the same seed gives another order: %s", diff)
	}
	if cmp.Equal(blocks, cellsOf(large(t, "  seed: 8\n", Options{}))) {
		t.Error("another seed gives the same order")
	}
}

// TestSeedsWhateverTheOrder: what seeds a trial are the study's seed and the
// repetition, as they were before trials were shuffled.
func TestSeedsWhateverTheOrder(t *testing.T) {
	for _, trial := range large(t, "  seed: 7\n", Options{}).Trials {
		want := map[int]string{1: "spec.seed=1916273996532168847", 2: "spec.seed=1916273446776354741"}[trial.Repetition]
		if got := trial.Set[len(trial.Set)-1]; want != "" && got != want {
			t.Errorf("%s has %s, want %s", trial.Name, got, want)
		}
	}
	d := large(t, "", Options{Seed: 5})
	if diff := cmp.Diff(&Order{Kind: "random", Seed: 5, Drawn: true}, d.Order); diff != "" {
		t.Error(diff)
	}
	for _, trial := range d.Trials {
		if slices.ContainsFunc(trial.Set, func(s string) bool { return strings.HasPrefix(s, "spec.seed=") }) {
			t.Errorf("%s has a seed of a study that has none: %v", trial.Name, trial.Set)
		}
	}
}

// TestResumeKeepsTheOrder: a study without a seed goes on in the order that was
// drawn when it was begun, not in one that is drawn now.
func TestResumeKeepsTheOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	if there, err := Resume(path, large(t, "", Options{Seed: 1})); there != nil || err != nil {
		t.Fatalf("%v, %v of a directory that is not there", there, err)
	}
	begun := begin(t, path, large(t, "", Options{Seed: 1}), Occasion{})
	resumed, err := Resume(path, large(t, "", Options{Seed: 2}))
	if err != nil {
		t.Fatal(err)
	}
	for _, again := range []*Dir{begin(t, path, large(t, "", Options{Seed: 2}), Occasion{Zone: "UTC"}), resumed} {
		if diff := cmp.Diff(begun.Design, again.Design); diff != "" {
			t.Error(diff)
		}
	}
}

// old is what version 1 of this program recorded of a study, before it shuffled.
const old = `{
  "format": 1,
  "name": "x",
  "base": null,
  "cells": [
    {
      "levels": [
        {
          "factor": "bs",
          "value": "4k"
        }
      ],
      "set": [
        "fio.bs=4k"
      ]
    },
    {
      "levels": [
        {
          "factor": "bs",
          "value": "64k"
        }
      ],
      "set": [
        "fio.bs=64k"
      ]
    }
  ],
  "trials": [
    {
      "name": "1_bs=4k_r1",
      "cell": 0,
      "repetition": 1,
      "set": [
        "fio.bs=4k"
      ]
    },
    {
      "name": "2_bs=64k_r1",
      "cell": 1,
      "repetition": 1,
      "set": [
        "fio.bs=64k"
      ]
    },
    {
      "name": "3_bs=4k_r2",
      "cell": 0,
      "repetition": 2,
      "set": [
        "fio.bs=4k"
      ]
    },
    {
      "name": "4_bs=64k_r2",
      "cell": 1,
      "repetition": 2,
      "set": [
        "fio.bs=64k"
      ]
    }
  ],
  "responses": null,
  "factors": [
    "bs"
  ]
}`

// TestResumeOfEarlierVersion: a study that was begun in the order of its cells
// goes on in that, whatever the seed of now.
func TestResumeOfEarlierVersion(t *testing.T) {
	path := t.TempDir()
	if err := os.WriteFile(filepath.Join(path, designFile), []byte(old), 0o644); err != nil {
		t.Fatal(err)
	}
	now := func(values string) *Design {
		text := "apiVersion: cnsbench.dev/v1alpha1\nkind: Study\nmetadata: {name: x}\n" +
			"spec: {repetitions: 2, factors: {fio.bs: " + values + "}, benchmark: {}}\n"
		for seed := int64(1); ; seed++ {
			d, err := New(loaded(t, text), Options{Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			if d.Trials[0].Cell == 1 { // an order that differs
				return d
			}
		}
	}
	dir := begin(t, path, now("[4k, 64k]"), Occasion{})
	var got []string
	for _, trial := range dir.Trials {
		got = append(got, trial.Name)
	}
	if diff := cmp.Diff([]string{"1_bs=4k_r1", "2_bs=64k_r1", "3_bs=4k_r2", "4_bs=64k_r2"}, got); diff != "" {
		t.Error(diff)
	}
	if dir.Order != nil || !strings.Contains(dir.Order.String(), "as the cells are listed") {
		t.Errorf("order %v", dir.Order)
	}
	if _, err := Begin(path, now("[4k, 1m]"), Occasion{}); err == nil || !strings.Contains(err.Error(), "another study") ||
		!strings.Contains(err.Error(), "(with other factors or variants)") {
		t.Errorf("other values of a factor: %v", err)
	}
}

// TestOpenHostile: a study.json without end, with trials outside of its directory,
// or of cells that it does not have, is refused.
func TestOpenHostile(t *testing.T) {
	for from, to := range map[string]string{
		`"cell": 1`: `"cell": 2`, `"cell": 0`: `"cell": -1`, "1_bs=4k_r1": "../1_bs=4k_r1",
	} {
		path := t.TempDir()
		text := []byte(strings.ReplaceAll(old, from, to))
		if err := os.WriteFile(filepath.Join(path, designFile), text, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "invalid trial") {
			t.Errorf("%s: %v", to, err)
		}
	}
	path := t.TempDir()
	name := filepath.Join(path, designFile)
	forged := strings.Replace(old, `"name": "x"`, `"name": "x\nExecStart=/bin/sh"`, 1)
	if err := os.WriteFile(name, []byte(forged), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "invalid name") {
		t.Errorf("a name of two lines: %v", err)
	}
	if err := errors.Join(os.WriteFile(name, nil, 0o644), os.Truncate(name, 1<<40)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); !errors.Is(err, bounded.ErrTooLarge) || !strings.Contains(err.Error(), name) {
		t.Errorf("a file of 1 TiB: %v", err)
	}
}
