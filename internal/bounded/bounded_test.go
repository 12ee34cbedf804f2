package bounded

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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

func TestReadPrivate(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		mode       os.FileMode
		pod        string
		want, fail string
	}{
		{"own", " secret\n", 0o600, "", "secret", ""},
		{"read only", "secret", 0o400, "", "secret", ""},
		{"of a group", "secret", 0o640, "", "", "chmod 600"},
		{"of all", "secret", 0o644, "", "", "chmod 600"},
		{"writable", "secret", 0o602, "", "", "chmod 600"},
		{"mounted into a pod", "secret\n", 0o644, "10.0.0.1", "secret", ""},
		{"long", "too long a secret", 0o600, "", "", "too large"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("KUBERNETES_SERVICE_HOST", tt.pod)
			file := filepath.Join(t.TempDir(), "token")
			if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(file, tt.mode); err != nil {
				t.Fatal(err)
			}
			got, err := ReadPrivate(file, 10)
			if got != tt.want || (err == nil) != (tt.fail == "") || err != nil && !strings.Contains(err.Error(), tt.fail) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	if _, err := ReadPrivate(filepath.Join(t.TempDir(), "none"), 10); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
