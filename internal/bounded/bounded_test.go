package bounded

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"
)

func TestReader(t *testing.T) {
	tests := []struct {
		name, text string
		limits     Limits
		want       string // of the error; empty: all is passed on
	}{
		{"within", "abcd\nefg\n", Limits{Line: 4, Total: 9}, ""},
		{"long line", "ab\nabcde\n", Limits{Line: 4}, "line 2 is longer than 4 bytes"},
		{"endless", strings.Repeat("x", 100), Limits{Line: 4}, "line 1 is longer"},
		{"long text", "a\nb\nc\n", Limits{Line: 4, Total: 5}, "the text is longer than 5 bytes"},
		{"quoted lines", "a,\"b\nc\nd\n", Limits{Line: 4, CSV: true}, "line 1 is longer"},
		{"quotes that are none", "# it's 5\"\nab\ncd\n", Limits{Line: 9, CSV: true}, ""},
		{"quotes doubled", "\"a\"\"b\"\n\"c\"\n", Limits{Line: 6, CSV: true}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := NewReader(iotest.OneByteReader(strings.NewReader(tt.text)), tt.limits)
			got, err := io.ReadAll(r)
			switch {
			case tt.want == "" && (err != nil || string(got) != tt.text || r.Err() != nil):
				t.Errorf("got %q, %v", got, err)
			case tt.want != "" && (!errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), tt.want) ||
				r.Err() == nil):
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestReadLine(t *testing.T) {
	long := strings.Repeat("x", 40)
	r := bufio.NewReaderSize(strings.NewReader("a\n"+long+"\nb"), 16)
	for _, want := range []string{"a\n", long + "\n"} {
		if line, err := ReadLine(r, 41); err != nil || string(line) != want {
			t.Errorf("got %q, %v; want %q", line, err, want)
		}
	}
	if line, err := ReadLine(r, 41); !errors.Is(err, io.EOF) || string(line) != "b" {
		t.Errorf("got %q, %v at the end", line, err)
	}
	r = bufio.NewReaderSize(strings.NewReader(long+"\n"), 16)
	if _, err := ReadLine(r, 40); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a line of 41 bytes: %v", err)
	}
}

func TestReadFile(t *testing.T) {
	fsys := fstest.MapFS{"f": {Data: []byte("12345")}}
	if b, err := ReadFile(fsys, "f", 5); err != nil || string(b) != "12345" {
		t.Errorf("got %q, %v", b, err)
	}
	if _, err := ReadFile(fsys, "f", 4); !errors.Is(err, ErrTooLarge) || !strings.HasPrefix(err.Error(), "f: ") {
		t.Errorf("got %v", err)
	}
}
