package option_test

import (
	"encoding/json"
	"testing"

	"github.com/cnsbench/cnsbench/internal/object/option"
)

// Each option is a field of the set by its name, in Go and in JSON, takes a value of its own, and gives it back.
func TestEveryOptionIsAField(t *testing.T) {
	values := map[string]string{"storageClass": "GLACIER", "encryption": "sse-c", "checksum": "crc32c", "ranges": "3",
		"batch": "7", "retention": "1h", "delimiter": "/"}
	for i := range option.All {
		o, set := &option.All[i], option.Set{}
		want := values[o.Name]
		if want == "" {
			want = "true"
		}
		if o.Of(&set) {
			t.Errorf("an empty set has %s", o.Name)
		}
		if err := o.Put(&set, want); err != nil || !o.Of(&set) || o.Text(&set) != want {
			t.Errorf("%s: %v, %q, want %q", o.Name, err, o.Text(&set), want)
		}
		b, err := json.Marshal(set)
		var fields map[string]any
		if err == nil {
			err = json.Unmarshal(b, &fields)
		}
		if _, ok := fields[o.Name]; err != nil || !ok || len(fields) != 1 {
			t.Errorf("%s is %s in JSON: %v", o.Name, b, err)
		}
		var taken option.Set
		if taken.Take(&set, o.Types[0]); taken != set {
			t.Errorf("a %s took %+v of %+v", o.Types[0], taken, set)
		}
		if taken = (option.Set{}); taken.OrNil() != nil {
			t.Error("an empty set is not nil")
		}
		if taken.Take(&set, "dispose"); taken != (option.Set{}) {
			t.Errorf("a dispose took %+v", taken)
		}
	}
}

func TestInvalidValues(t *testing.T) {
	for _, tt := range [][2]string{{"encryption", "rot13"}, {"checksum", "md5"}, {"ranges", "0"}, {"batch", "1001"},
		{"ifNoneMatch", "perhaps"}, {"retention", "soon"}, {"retention", "1ms"}, {"storageClass", "A\r\nB: c"}} {
		for i := range option.All {
			o, set := &option.All[i], option.Set{}
			if o.Name == tt[0] && o.Put(&set, tt[1]) == nil {
				t.Errorf("%s=%q was taken as %+v", tt[0], tt[1], set)
			}
		}
	}
}
