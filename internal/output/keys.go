package output

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// keys is a set of document keys of one target. Those of ops, or of requests with metrics, are nearly dense, and stored
// as ranges of their numbers: no target gets both.
type keys struct {
	ops   []span // in order, apart from each other
	names map[string]bool
	n     int64
}

type span struct{ from, to int64 } // both within

const (
	opPrefix      = "op/"
	metricsPrefix = "metrics/"
)

func opKey(id int64) string { return opPrefix + strconv.FormatInt(id, 10) }

func metricsKey(n int64) string { return metricsPrefix + strconv.FormatInt(n, 10) }

// numberOf returns the number of a key of an op or of metrics.
func numberOf(key string) (int64, bool) {
	text, ok := strings.CutPrefix(key, metricsPrefix)
	if !ok {
		return opOf(key)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// opOf returns the op id of a key.
func opOf(key string) (int64, bool) {
	text, ok := strings.CutPrefix(key, opPrefix)
	id, err := strconv.ParseInt(text, 10, 64)
	return id, ok && err == nil
}

func (k *keys) has(key string) bool {
	id, ok := numberOf(key)
	if !ok {
		return k.names[key]
	}
	_, found := k.find(id)
	return found
}

// find gives the range that id is in, or the place where it would come.
func (k *keys) find(id int64) (int, bool) {
	return slices.BinarySearchFunc(k.ops, id, func(s span, id int64) int {
		switch {
		case s.to < id:
			return -1
		case s.from > id:
			return 1
		}
		return 0
	})
}

func (k *keys) add(key string) {
	if k.has(key) {
		return
	}
	k.n++
	id, ok := numberOf(key)
	if !ok {
		if k.names == nil {
			k.names = map[string]bool{}
		}
		k.names[key] = true
		return
	}
	i, _ := k.find(id)
	before := i > 0 && k.ops[i-1].to == id-1
	after := i < len(k.ops) && k.ops[i].from == id+1
	switch {
	case before && after:
		k.ops[i-1].to = k.ops[i].to
		k.ops = slices.Delete(k.ops, i, i+1)
	case before:
		k.ops[i-1].to = id
	case after:
		k.ops[i].from = id
	default:
		k.ops = slices.Insert(k.ops, i, span{id, id})
	}
}

// keysJSON is how a set is kept: {"ops": "1-40,42", "others": ["run/start"]}.
type keysJSON struct {
	Ops    string   `json:"ops"`
	Others []string `json:"others"`
}

// MarshalJSON writes the set.
func (k *keys) MarshalJSON() ([]byte, error) {
	var ranges []string
	for _, s := range k.ops {
		text := strconv.FormatInt(s.from, 10)
		if s.to > s.from {
			text += "-" + strconv.FormatInt(s.to, 10)
		}
		ranges = append(ranges, text)
	}
	others := []string{}
	for name := range k.names {
		others = append(others, name)
	}
	slices.Sort(others)
	return json.Marshal(keysJSON{strings.Join(ranges, ","), others})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (k *keys) UnmarshalJSON(b []byte) error {
	var j keysJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*k = keys{names: map[string]bool{}}
	for _, name := range j.Others {
		k.add(name)
	}
	last := int64(-1)
	for text := range strings.SplitSeq(j.Ops, ",") {
		if text == "" {
			continue
		}
		from, to, isRange := strings.Cut(text, "-")
		if !isRange {
			to = from
		}
		a, errA := strconv.ParseInt(from, 10, 64)
		z, errZ := strconv.ParseInt(to, 10, 64)
		if errA != nil || errZ != nil || a <= last || z < a {
			return fmt.Errorf("invalid ranges %q: want an ascending list", j.Ops)
		}
		k.ops, last = append(k.ops, span{a, z}), z
		k.n += z - a + 1
	}
	return nil
}
