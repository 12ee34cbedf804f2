package variable

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	tests := []struct {
		kind, value string
		want        string // of the message; empty: it is of the type
		hint        string
	}{
		{kind: "seconds 1..", value: "3"},
		{kind: "seconds 1..", value: "3s", want: `"3s" is not an integer number of seconds`,
			hint: "write 3: the unit is seconds"},
		{kind: "seconds", value: "2m", want: "not an integer", hint: "write 120"},
		{kind: "seconds", value: "1.5", want: "not an integer", hint: "such as 60"},
		{kind: "seconds 1..", value: "0", want: `"0" is less than 1`, hint: "at least 1"},
		{kind: "duration", value: "1m30s"},
		{kind: "duration", value: "30", want: "not a duration", hint: `did you mean "30s"?`},
		{kind: "duration 1s..1h", value: "2h", want: "more than 1h"},
		{kind: "size", value: "1.5Gi"},
		{kind: "size", value: "10GB", want: "not a quantity", hint: "10G or 10Gi"},
		{kind: "size 1Mi..", value: "64", want: "less than 1Mi", hint: `did you mean "64Mi"?`},
		{kind: "size", value: "9E", want: "not a quantity"},
		{kind: "fioSize", value: "4k"},
		{kind: "fioSize", value: "4KiB"},
		{kind: "fioSize", value: "4q", want: `"4q" is not a size of fio`, hint: "such as 4k"},
		{kind: "fioSize", value: "1.5k", want: "not a size", hint: "write 1536, in bytes"},
		{kind: "fioSize", value: "", want: "not a size"},
		{kind: "fioSize 512..", value: "4", want: "less than 512", hint: `did you mean "4k"?`},
		{kind: "list fioSize 512..", value: "4k,8k"},
		{kind: "list fioSize 512..", value: ",8k"},
		{kind: "list fioSize 512..", value: "4k,8q", want: `"8q"`},
		{kind: "list int 0..", value: ",", want: "not an integer"},
		{kind: "int 1..", value: "-1", want: `"-1" is less than 1`},
		{kind: "int 1..64", value: "65", want: "more than 64", hint: "at most 64"},
		{kind: "int", value: "1.0", want: "not an integer", hint: "write 1"},
		{kind: "int", value: "0x10", want: "not an integer"},
		{kind: "int", value: " 4", want: "not an integer", hint: "write 4"},
		{kind: "number 0..1", value: "0.5"},
		{kind: "number", value: "NaN", want: "not a number"},
		{kind: "bool", value: "false"},
		{kind: "bool", value: "yes", want: "not true or false"},
		{kind: "enum read randwrite", value: "randwrite"},
		{kind: "enum read randwrite", value: "randwirte", want: `"randwirte" is not one of its values`},
		{kind: "storageClass", value: "fast.ssd-1"},
		{kind: "storageClass", value: "Fast", want: "not the name of a StorageClass"},
		{kind: "text", value: "a\nb"},
	}
	for _, tt := range tests {
		t.Run(tt.kind+"="+tt.value, func(t *testing.T) {
			kind, err := Parse(tt.kind)
			if err != nil {
				t.Fatal(err)
			}
			p := kind.Check(tt.value)
			switch {
			case p == nil && tt.want != "":
				t.Errorf("taken, want %q", tt.want)
			case p != nil && (tt.want == "" || !strings.Contains(p.Message, tt.want) ||
				!strings.Contains(p.Hint, tt.hint)):
				t.Errorf("got %q (%s), want %q (%s)", p.Message, p.Hint, tt.want, tt.hint)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"", "list", "integer", "enum", "int 1", "int 5..1", "int a..", "bool yes",
		"seconds 1..2 3"} {
		if _, err := Parse(text); err == nil {
			t.Errorf("type %q was taken", text)
		}
	}
}

func FuzzType(f *testing.F) {
	f.Add("list fioSize 512..", "4k,8k")
	f.Add("size 1Mi..1Pi", "1.5Gi")
	f.Add("seconds", "1h1m")
	f.Fuzz(func(t *testing.T, text, value string) {
		kind, err := Parse(text)
		if err != nil {
			return
		}
		if p := kind.Check(value); p == nil && kind.Size() {
			if _, err := kind.Bytes(value); err != nil {
				t.Errorf("size %q passes but has no bytes: %v", value, err)
			}
		}
		if again, err := Parse(kind.String()); err != nil || again.String() != kind.String() {
			t.Errorf("type %q is read as %q, %v", kind, again, err)
		}
	})
}
