package bounded

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	tests := []struct {
		name, text string
		want       []string
	}{
		{"nothing", "", nil},
		{"lines", "a\n\nb\n", []string{"a", "", "b"}},
		{"no end", "a\nb", []string{"a", "b"}},
		{"just fits", "12345678\n", []string{"12345678"}},
		{"too long", "123456789\nb\n", []string{"12345678… (1 more bytes)", "b"}},
		{"longer than the buffer", long + "\nb", []string{"xxxxxxxx… (99992 more bytes)", "b"}},
		{"longer, without an end", long, []string{"xxxxxxxx… (99992 more bytes)"}},
		{"binary", "\x00\xff\n\x1b[2J\n", []string{"\x00\xff", "\x1b[2J"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for l, err := range Lines(iotest.HalfReader(strings.NewReader(tt.text)), 8) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, l.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestLinesFail checks that lines before an error are yielded, and the error after them.
func TestLinesFail(t *testing.T) {
	broken := errors.New("broken")
	var got []string
	var last error
	for l, err := range Lines(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)), 8) {
		if last = err; err == nil {
			got = append(got, l.String())
		}
	}
	if diff := cmp.Diff([]string{"a", "b"}, got); diff != "" || !errors.Is(last, broken) {
		t.Errorf("%v %s", last, diff)
	}
}

// endless is a reader of n bytes without a line end.
type endless int64

func (e *endless) Read(p []byte) (int, error) {
	if *e == 0 {
		return 0, io.EOF
	}
	n := min(int64(*e), int64(len(p)))
	for i := range p[:n] {
		p[i] = 'x'
	}
	*e -= endless(n)
	return int(n), nil
}

// TestLinesMemory checks that a line of 100 MB takes the memory of a short one.
func TestLinesMemory(t *testing.T) {
	allocated := testing.AllocsPerRun(1, func() {
		e := endless(100 << 20)
		for l, err := range Lines(&e, 1<<10) {
			if err != nil || len(l.Text) != 1<<10 || l.Cut != 100<<20-1<<10 {
				t.Fatalf("%d bytes, %d more, %v", len(l.Text), l.Cut, err)
			}
		}
	})
	if allocated > 20 {
		t.Errorf("%.0f allocations", allocated)
	}
}
