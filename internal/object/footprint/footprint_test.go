package footprint

import (
	"bytes"
	"os"
	"strconv"
	"testing"
)

// Pages of the program are given back, and it goes on.
func TestShrink(t *testing.T) {
	program, err := os.ReadFile("/proc/self/exe") // the page cache has it, too
	if err != nil {
		t.Fatal(err)
	}
	before, _, err := resident()
	if err != nil {
		t.Fatal(err)
	}
	if err := Shrink(); err != nil {
		t.Fatal(err)
	}
	after, anonymous, err := resident()
	if err != nil {
		t.Fatal(err)
	}
	if after >= before*9/10 || after == 0 || anonymous == 0 {
		t.Errorf("%d bytes of files are resident, %d before, and %d others", after, before, anonymous)
	}
	again, err := os.ReadFile("/proc/self/exe")
	if err != nil || !bytes.Equal(program, again) {
		t.Errorf("the program is another one: %v", err)
	}
}

func TestReadOnlyOf(t *testing.T) {
	tests := []struct {
		line string
		want bool
	}{
		{"00400000-02bd4000 r-xp 00000000 fd:00 131 /p/x", true},
		{"02bd4000-04e95000 r--p 027d4000 fd:00 131 /p/x", true},
		{"04e95000-04fb4000 rw-p 04a95000 fd:00 131 /p/x", false},
		{"7f0-7f9 r--p 00000000 fd:00 13 /lib/x.so", false},
		{"7ffc5f7d4000-7ffc5f7d6000 r-xp 00000000 00:00 0 [vdso]", false},
		{"rubbish", false},
	}
	for _, tt := range tests {
		if _, _, ok := readOnlyOf(tt.line, "/p/x"); ok != tt.want {
			t.Errorf("%q: %v", tt.line, ok)
		}
	}
}

// resident is the resident memory of this process: pages of files, and anonymous ones, in bytes.
func resident() (file, anonymous int64, err error) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0, err
	}
	of := func(key string) int64 {
		_, rest, _ := bytes.Cut(b, []byte("\n"+key+":"))
		fields := bytes.Fields(rest[:min(len(rest), 40)])
		if len(fields) == 0 {
			return 0
		}
		n, _ := strconv.ParseInt(string(fields[0]), 10, 64)
		return n << 10
	}
	return of("RssFile"), of("RssAnon"), nil
}
