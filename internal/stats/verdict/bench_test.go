package verdict_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cnsbench/cnsbench/internal/stats/statstest"
	. "github.com/cnsbench/cnsbench/internal/stats/verdict"
)

func BenchmarkNew(b *testing.B) {
	for _, n := range []int{10, 50, 50_000} {
		for _, paired := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d/paired=%t", n, paired), func(b *testing.B) {
				random := rand.New(rand.NewPCG(1, 1))
				x, y := statstest.LogNormal(random, n, 100, 0.1), statstest.LogNormal(random, n, 100, 0.1)
				for i := range x { // ties
					x[i], y[i] = math.Round(x[i]), math.Round(y[i])
				}
				for b.Loop() {
					New(x, y, paired)
				}
			})
		}
	}
}
