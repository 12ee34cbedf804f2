package trace

import (
	"bufio"
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sample returns one record of each operation.
func sample() []Record {
	return []Record{
		{Time: -5e9, Op: Create, Kind: Volume, Object: "ns/old", Class: "fast", Size: 1 << 30, Duration: Unknown},
		{Time: 0, Op: Exists, Kind: Snapshots, Object: "ns/older", Source: "ns/old", Duration: Unknown},
		{Time: 1, Op: Create, Kind: Volume, Object: "ns/a", Class: "fast", Size: 10, Node: "n1", Outcome: "ok",
			Duration: 7},
		{Time: 1, Op: Snapshot, Kind: Snapshots, Object: "ns/s", Source: "ns/a", Outcome: "ok", Duration: 0},
		{Time: 2, Op: Restore, Kind: Volume, Object: "ns/r", Source: "ns/s", Outcome: "error", Duration: Unknown},
		{Time: 2, Op: Clone, Kind: Volume, Object: "ns/c", Source: "ns/a", Outcome: "timeout", Duration: Unknown},
		{Time: 3, Op: Resize, Kind: Volume, Object: "ns/a", Size: 20, Duration: Unknown},
		{Time: 4, Op: Modify, Kind: Volume, Object: "ns/a", Class: "gold", Duration: Unknown},
		{Time: 5, Op: Create, Kind: Workload, Object: "ns/pod", Source: "ns/a ns/r", Node: "n2", Duration: Unknown},
		{Time: 6, Op: Attach, Kind: Attachment, Object: "va", Source: "ns/a", Node: "n2", Outcome: "ok", Duration: 3},
		{Time: 7, Op: Detach, Kind: Attachment, Object: "va", Duration: Unknown},
		{Time: 8, Op: Delete, Kind: Workload, Object: "ns/pod", Outcome: "censored", Duration: Unknown},
		{Time: 9, Op: End, Duration: Unknown},
	}
}

// TestWrittenTracesAreReadAgain checks that Read returns the records that Write has written, in each format.
func TestWrittenTracesAreReadAgain(t *testing.T) {
	for _, name := range []string{"a.csv", "a.jsonl", "a.csv.gz", "a.jsonl.gz"} {
		var b bytes.Buffer
		w := bufio.NewWriterSize(&b, 256<<10) // a caller may pass a buffered writer
		if err := errors.Join(Write(w, name, sample()), w.Flush()); err != nil {
			t.Fatal(err)
		}
		if compressed := b.Bytes()[0] == 0x1f; compressed != strings.HasSuffix(name, ".gz") {
			t.Errorf("%s: compressed %v", name, compressed)
		}
		got, err := Read(&b)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(sample(), got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// TestReadRefuses checks the errors of invalid traces.
func TestReadRefuses(t *testing.T) {
	const csv = "# cnsbench trace 1\ntime,op,kind,object,source,duration\n"
	const lines = "{\"cnsbenchTrace\": 1}\n"
	tests := []struct{ name, text, want string }{
		{"nothing", "", "the file is empty"},
		{"no version", "time,op\n", "line 1"},
		{"newer", "# cnsbench trace 2\n", "line 1"},
		{"newer lines", `{"cnsbenchTrace": 2}`, "format 2"},
		{"other JSON", "{\"a\": 2}\n", "line 1"},
		{"no columns", "# cnsbench trace 1\n", "line 2"},
		{"column is missing", "# cnsbench trace 1\ntime,op\n", `line 2: column "kind" is missing`},
		{"column twice", "# cnsbench trace 1\ntime,time,op,kind,object\n", "duplicate"},
		{"no number", csv + "soon,create,volume,a,,\n", `line 3: invalid time "soon": want an integer`},
		{"negative duration", csv + "1,create,volume,a,,-1\n", "line 3: invalid duration -1"},
		{"no such op", csv + "1,create,volume,a,,\n2,format,volume,a,,\n", `line 4: invalid op "format"`},
		{"wrong kind", csv + "1,create,snapshot,a,,\n", "of op create"},
		{"no object", csv + "1,create,volume,,,\n", "every op but end has one"},
		{"space", csv + "1,create,volume,a b,,\n", "no spaces"},
		{"before the start", csv + "-1,delete,volume,a,,\n", "before the start"},
		{"too few fields", csv + "1,create\n", "line 3"},
		{"no time", lines + `{"op": "end"}`, "line 2: time is missing"},
		{"broken JSON", lines + `{"time": 1, "op": "end"}` + "\n{", "line 3"},
		{"broken gzip", "\x1f\x8b nonsense", "trace:"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Read(strings.NewReader(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// TestAnonymize checks that no name remains, that equal names stay equal, and that all other fields are
// unchanged.
func TestAnonymize(t *testing.T) {
	key := []byte("0123456789abcdef")
	hidden := sample()
	if err := Anonymize(hidden, key); err != nil {
		t.Fatal(err)
	}
	again := sample()
	_ = Anonymize(again, key)
	if diff := cmp.Diff(hidden, again); diff != "" {
		t.Errorf("the same key gives other names:\n%s", diff)
	}
	other := sample()
	_ = Anonymize(other, []byte("another key of 16"))
	var b bytes.Buffer
	if err := Write(&b, "a.csv", hidden); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ns/", "fast", "gold", "n1", "n2", "pod", "va,"} {
		if strings.Contains(b.String(), name) {
			t.Errorf("%q is still there:\n%s", name, b.String())
		}
	}
	// Everything but the names is unchanged.
	for i, r := range sample() {
		h := hidden[i]
		if h.Time != r.Time || h.Op != r.Op || h.Kind != r.Kind || h.Size != r.Size || h.Outcome != r.Outcome ||
			h.Duration != r.Duration {
			t.Errorf("record %d: %+v became %+v", i, r, h)
		}
		if r.Object != "" && h.Object == other[i].Object {
			t.Errorf("two keys give %q", h.Object)
		}
		for j, s := range sample() {
			if (r.Key() == s.Key()) != (h.Key() == hidden[j].Key()) {
				t.Errorf("records %d and %d: objects %q and %q", i, j, r.Object, s.Object)
			}
			for k, of := range r.SourceKeys() {
				if (of == s.Key()) != (h.SourceKeys()[k] == hidden[j].Key()) {
					t.Errorf("record %d: source %q, record %d", i, of, j)
				}
			}
		}
	}
	if err := Anonymize(sample(), key[:15]); err == nil {
		t.Error("a key of 15 bytes is taken")
	}
}

// TestAfter checks the records after the beginning of a trace is removed.
func TestAfter(t *testing.T) {
	records := []Record{
		{Time: -5, Op: Create, Kind: Volume, Object: "a"},
		{Time: 0, Op: Exists, Kind: Volume, Object: "b"},
		{Time: 1, Op: Create, Kind: Volume, Object: "c"},
		{Time: 2, Op: Create, Kind: Volume, Object: "d"},
		{Time: 3, Op: Resize, Kind: Volume, Object: "d"},
		{Time: 4, Op: Delete, Kind: Volume, Object: "c"},
		{Time: 10, Op: Create, Kind: Volume, Object: "c"},
		{Time: 12, Op: Delete, Kind: Volume, Object: "d"},
		{Time: 20, Op: End},
	}
	want := []Record{
		{Time: -15, Op: Create, Kind: Volume, Object: "a"},
		{Time: -8, Op: Create, Kind: Volume, Object: "d"},
		{Time: 0, Op: Exists, Kind: Volume, Object: "b"},
		{Time: 0, Op: Create, Kind: Volume, Object: "c"},
		{Time: 2, Op: Delete, Kind: Volume, Object: "d"},
		{Time: 10, Op: End},
	}
	if diff := cmp.Diff(want, After(records, 10)); diff != "" {
		t.Error(diff)
	}
}

// FuzzRead checks that read records are valid, sorted, and equal after they are written and read again.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"a.csv", "a.jsonl", "a.csv.gz"} {
		var b bytes.Buffer
		if err := Write(&b, name, sample()); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Add([]byte("# cnsbench trace 1\nop,object,time,kind\n# nothing\nend,,9223372036854775807,\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		records, err := Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		for i := range records {
			if err := records[i].Check(); err != nil {
				t.Fatalf("record %d: %v", i, err)
			}
			if i > 0 && records[i].Time < records[i-1].Time {
				t.Fatalf("record %d is before the one before it", i)
			}
		}
		for _, name := range []string{"a.csv", "a.jsonl"} {
			var b bytes.Buffer
			if err := Write(&b, name, records); err != nil {
				t.Fatal(err)
			}
			again, err := Read(&b)
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, b.String())
			}
			if diff := cmp.Diff(records, again); diff != "" {
				t.Fatalf("%s:\n%s", name, diff)
			}
		}
	})
}
