package spread_test

import (
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/nullstore"
	"github.com/cnsbench/cnsbench/internal/object/spread"
	"github.com/cnsbench/cnsbench/internal/op"
)

// BenchmarkDo is what several endpoints add to an operation of the null store.
func BenchmarkDo(b *testing.B) {
	clock := op.NewClock()
	null := &nullstore.Store{Size: 4096, Clock: clock}
	of := func(settings map[string]string, n int) client.Store {
		urls := strings.Split(strings.Repeat("http://a:1 ", n), " ")[:n]
		for i := range urls {
			urls[i] += string(rune('a' + i))
		}
		s, err := spread.New(spread.Config{Settings: settings, URLs: urls, Clock: clock,
			Open: func(string, string) (client.Store, error) { return null, nil }})
		if err != nil {
			b.Fatal(err)
		}
		return s
	}
	for name, s := range map[string]client.Store{"none": null, "one": of(nil, 1),
		"four": of(map[string]string{spread.By: spread.ByRequest, spread.OnFailure: spread.LeaveOut}, 4)} {
		b.Run(name, func(b *testing.B) {
			c, err := s.Client()
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			request, result := client.Request{Verb: client.Get, Length: -1}, client.Result{}
			b.ReportAllocs()
			for b.Loop() {
				c.Do(b.Context(), &request, &result)
			}
		})
	}
}
