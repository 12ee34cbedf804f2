package html

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/op"
)

// clip shortens a text to n characters.
func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// quote quotes a word for a POSIX shell.
func quote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("-_./=:,@%+", r)
	}
	if word != "" && strings.TrimFunc(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func seconds(t op.Time) string { return fmt.Sprintf("%.2f", float64(t)/1e9) }

func hasWord(s string, words ...string) bool {
	fields := strings.Fields(s)
	return !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(fields, w) })
}

// opTime returns the service time of an op.
func opTime(o op.Op) string {
	took, _ := o.Service()
	return units.Duration(float64(took))
}

func optional[T any](v *T, format func(T) string) string {
	if v == nil {
		return "–"
	}
	return format(*v)
}
