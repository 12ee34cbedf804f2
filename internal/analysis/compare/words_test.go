package compare

import "testing"

func TestFigure(t *testing.T) {
	for _, tt := range []struct {
		value float64
		unit  string
		want  string
	}{
		{117.7312, "MiB/s", "118 MiB/s"}, {35745, "IOPS", "35.7k IOPS"}, {9999, "IOPS", "9999 IOPS"},
		{1234567, "1/s", "1.23M/s"}, {0.000123456, "s", "0.000123 s"}, {1234567, "ns", "1.23 ms"},
		{3 << 20, "B/s", "3 MiB/s"}, {12.3456, "", "12.3"}, {-45678, "x", "-45.7k x"}, {0, "IOPS", "0 IOPS"},
		{2.5e15, "x", "2.5e+15 x"},
	} {
		if got := Figure(&tt.value, tt.unit); got != tt.want {
			t.Errorf("%v %s: %q, want %q", tt.value, tt.unit, got, tt.want)
		}
	}
	if got := Figure(nil, "IOPS"); got != "–" {
		t.Errorf("nil: %q", got)
	}
}

// TestColumn: a fourth digit only where the interval of the median supports it.
func TestColumn(t *testing.T) {
	median, low, high := 3991.75, 3990.5, 3992.5
	c := Cell{Unit: "IOPS", Median: &median, MedianLow: &low, MedianHigh: &high}
	x := 66.98765
	if got := c.Column(&x); got != "66.99" {
		t.Errorf("within 0.05 %%: %q, want 66.99", got)
	}
	low = 3900
	if got := c.Column(&x); got != "67" {
		t.Errorf("within 2 %%: %q, want 67", got)
	}
}

func TestP(t *testing.T) {
	for p, want := range map[float64]string{0.0312: "= 0.031", 1e-20: "= 1e-20", 1e-300: "< 1e-300"} {
		if got := equals(p); got != want {
			t.Errorf("p %s, want %s", got, want)
		}
	}
}

func TestMore(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{1: "1 more level", 7: "7 more levels"} {
		if got := more(n, "level"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestAbsentSentences: those beyond the sentences that name a level are counted.
func TestAbsentSentences(t *testing.T) {
	t.Parallel()
	r := Result{Absent: make([]Absent, maxSentences+7)}
	list := r.absentSentences()
	if got := list[len(list)-1]; got != "7 more levels without a value." {
		t.Errorf("%q", got)
	}
}
