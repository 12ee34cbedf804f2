package coordinator

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/agent/message"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/test/loadtest"
)

// pipe is a connection within memory.
type pipe struct{ bytes.Buffer }

func (*pipe) Close() error                     { return nil }
func (*pipe) SetWriteDeadline(time.Time) error { return nil }

func over(p *pipe) *message.Conn {
	return message.New(p, func() int64 { return 0 }, maxFrame, time.Second)
}

// cell is that of k, made where it is not there.
func cell(c loadgen.Cells, k loadgen.Key) *loadgen.Cell {
	if c[k] == nil {
		c[k] = loadtest.NewCell()
	}
	return c[k]
}

// A thousand hosts that each tell of some seconds come to exactly what one would
// have that saw all: each bucket, each sum, each extreme.
func TestMergeOfAThousandHostsIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	one, many := loadgen.Cells{}, loadgen.Cells{}
	keys := []loadgen.Key{{Op: 0, Label: "200", OK: true}, {Op: 1, Label: "200", OK: true},
		{Op: 0, Label: "503 SlowDown"}, {Op: 1, Label: "200", OK: true, Ramp: true}}
	add := func(c *loadgen.Cell, v int64) {
		c.N++
		c.Bytes += v % 8192
		c.Attempts++
		for _, h := range []*hist.Histogram{c.Response, c.Service, c.First} {
			if err := h.Record(v); err != nil {
				t.Fatal(err)
			}
		}
	}
	for host := range 1000 {
		for range 2 {
			told := loadgen.Cells{}
			for i := range 20 + host%7 {
				k := keys[rng.IntN(len(keys))]
				v := int64(rng.ExpFloat64() * 1e6 * float64(1+host%13))
				if host%100 == 7 && i == 0 {
					v += hist.Highest // a day and more
				}
				add(cell(one, k), v)
				add(cell(told, k), v)
			}
			p := &pipe{}
			if err := over(p).Write(&frame{Second: &second{Cells: told}}); err != nil {
				t.Fatal(err)
			}
			var l frame
			if err := over(p).Read(&l); err != nil {
				t.Fatal(err)
			}
			if err := many.Merge(l.Second.Cells); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(many) != len(one) {
		t.Errorf("%d kinds of outcomes, want %d", len(many), len(one))
	}
	for k, want := range one {
		a, errA := json.Marshal(want)
		b, errB := json.Marshal(many[k])
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if diff := cmp.Diff(string(a), string(b)); diff != "" {
			t.Errorf("%v (-one +many):\n%s", k, diff)
		}
	}
}

func TestCellsThatCannotBe(t *testing.T) {
	tests := map[string]string{
		"cells twice":     framed(`{"second":{"cells":[{"Key":{"Op":0},"Cell":{"N":1}},{"Key":{"Op":0},"Cell":{"N":1}}]}}`),
		"negative counts": framed(`{"second":{"cells":[{"Key":{"Op":0},"Cell":{"N":-1}}]}}`),
		"no cell":         framed(`{"second":{"cells":[{"Key":{"Op":0}}]}}`),
		"cut histogram":   framed(`{"second":{"cells":[{"Key":{"Op":0},"Cell":{"N":1},"Hist":[{"s":1,"l":1,"h":1,"c":"AQ=="}]}]}}`),
		"empty histogram": framed(`{"second":{"cells":[{"Key":{"Op":0},"Cell":{"N":1},"Hist":[{"s":1,"l":1,"h":1,"c":""}]}]}}`),
		"wrong extremes":  framed(`{"second":{"cells":[{"Key":{"Op":0},"Cell":{"N":1},"Hist":[{"s":1,"l":3,"h":1,"c":"AQE="}]}]}}`),
	}
	for name, text := range tests {
		p := &pipe{}
		p.WriteString(text)
		var l frame
		if err := over(p).Read(&l); err == nil {
			t.Errorf("%s was read: %+v", name, l)
		}
	}
}

func framed(text string) string {
	n := len(text)
	return string([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) + text
}

// FuzzRead reads what anybody may send. What is read can be sent on and is the
// same then.
func FuzzRead(f *testing.F) {
	for _, text := range []string{"", "\x00", framed("{}"),
		framed(`{"ping":{"sent":1}}`),
		framed(`{"second":{"work":"w","from":1,"to":2,"cells":[{"Key":{"Op":0,"Label":"200","OK":true},"Cell":{"N":1},"Hist":[{"s":5,"l":5,"h":5,"c":"BQE="}]}],"usage":{"CPU":1}}}`),
		framed(`{"order":{"stage":{"name":"s","works":[{"name":"w","kind":"normal","workers":1,"rate":"poisson(5)","operations":[{"type":"read","name":"read","weight":100,"sizes":{"Kind":1,"Unit":1}}]}]},"secrets":[{"password":"x"}]}}`),
		framed(`{"ended":{"works":[{"began":1,"from":null,"to":2,"ended":3}],"at":5}}`),
		"\x00\x00\x00\x09{\"ping\":{", "\xff\xff\xff\xff"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p := &pipe{}
		p.Write(data)
		var l frame
		if over(p).Read(&l) != nil {
			return
		}
		if l.Order != nil {
			_ = l.Order.complete() // must not panic
		}
		var again pipe
		if err := over(&again).Write(&l); err != nil {
			t.Fatalf("%+v cannot be sent on: %v", l, err)
		}
	})
}
