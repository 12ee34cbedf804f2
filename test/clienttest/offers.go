package clienttest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/option"
)

var updateOffers = flag.Bool("update-offers", false, "write what the servers offer into the documentation")

// offer is an operation or option that not all stores have. run tries it once, in a container of its own, and returns
// the answer; ignored says that the store accepted it without effect.
type offer struct {
	name string
	run  func(s *suite, t *testing.T, c []byte) (res client.Result, ignored bool)
}

// ignoredText is for what a store accepts and does not do.
const ignoredText = "no: accepted without effect"

// offers in the order of the documentation.
var offers = []offer{
	{"`versioning`", func(s *suite, t *testing.T, _ []byte) (client.Result, bool) {
		c, made := s.withOptions(t, "versioned", option.Set{Versioning: true})
		if !made.OK() {
			return made, false
		}
		s.put(t, c, "o", 1)
		s.put(t, c, "o", 2)
		list := s.call(t, c, "listversions")
		return made, list.OK() && list.Keys < 2
	}},
	{"`listversions`", versioned("listversions")},
	{"`readversion`", versioned("readversion")},
	{"`deleteversion`", versioned("deleteversion")},
	{"`deleteobjects`", func(s *suite, t *testing.T, c []byte) (client.Result, bool) {
		s.put(t, c, "a&<b>", 1)
		s.put(t, c, "b", 2)
		r := s.do(t, client.Request{Verb: client.Call, Call: "deleteobjects", Container: c,
			Batch: [][]byte{[]byte("a&<b>"), []byte("b")}})
		b, a := s.head(t, c, "b"), s.head(t, c, "a&<b>")
		return r, r.OK() && (r.Keys != 2 || b.OK() || a.OK())
	}},
	{"`puttags`", onObject("puttags")},
	{"`gettags`", func(s *suite, t *testing.T, c []byte) (client.Result, bool) {
		s.put(t, c, "o", 1)
		if put := s.call(t, c, "puttags"); !put.OK() {
			return put, false
		}
		r := s.call(t, c, "gettags")
		return r, r.OK() && r.Keys != 2
	}},
	{"`deletetags`", onObject("deletetags")},
	{"`objectLock`", locked("putretention", "getretention")},
	{"`putretention`", locked("putretention", "getretention")},
	{"`getretention`", locked("putretention", "getretention")},
	{"`puthold`", locked("puthold", "gethold")},
	{"`gethold`", locked("puthold", "gethold")},
	{"`encryption: sse-s3`", written(option.Set{Encryption: option.SSES3})},
	{"`encryption: sse-c`", written(option.Set{Encryption: option.SSEC})},
	{"`storageClass: STANDARD_IA`", written(option.Set{StorageClass: "STANDARD_IA"})},
	{"`checksum: crc32c`", written(option.Set{Checksum: option.CRC32C})},
	{"`checksum: crc64nvme`", written(option.Set{Checksum: option.CRC64NVME})},
	{"`checksum: sha256`", written(option.Set{Checksum: option.SHA256})},
	{"`ifNoneMatch`", func(s *suite, t *testing.T, c []byte) (client.Result, bool) {
		o := &option.Set{IfNoneMatch: true}
		r := client.Request{Verb: client.Put, Container: c, Object: []byte("o"), Size: 4096, Options: o}
		first := s.do(t, r)
		second := s.do(t, r)
		return first, first.OK() && second.Status != 412
	}},
	{"`ranges`", func(s *suite, t *testing.T, c []byte) (client.Result, bool) {
		s.must(t, client.Request{Verb: client.Put, Container: c, Object: []byte("o"), Size: 100_000, Writer: 1})
		r := s.do(t, client.Request{Verb: client.Get, Container: c, Object: []byte("o"), Verify: true, Length: 8192,
			Offsets: []int64{4096, 16384, 65536}})
		if r.OK() && r.Bytes != 3*8192 {
			t.Errorf("three ranges have %d bytes, want %d", r.Bytes, 3*8192)
		}
		return r, false
	}},
	{"`delimiter`", func(s *suite, t *testing.T, c []byte) (client.Result, bool) {
		for _, name := range []string{"d/1", "d/2", "e/1", "f"} {
			s.put(t, c, name, 1)
		}
		r := s.do(t, client.Request{Verb: client.List, Container: c, MaxKeys: 1000,
			Options: &option.Set{Delimiter: "/"}})
		return r, r.OK() && r.Keys != 3+s.marks(t, c)
	}},
	{"`allPages`", func(s *suite, t *testing.T, c []byte) (client.Result, bool) {
		for i := range 7 {
			s.put(t, c, fmt.Sprintf("p%d", i), 1)
		}
		pages := 0
		r := s.do(t, client.Request{Verb: client.List, Container: c, Object: []byte("p"), MaxKeys: 3, Names: true,
			Options: &option.Set{AllPages: true}, Steps: func(client.Step, *client.Result) { pages++ }})
		if r.OK() && (pages < 3 || !slices.IsSorted(r.Names) || len(r.Names) != r.Keys) {
			t.Errorf("%d pages with %d keys %q", pages, r.Keys, r.Names)
		}
		return r, r.OK() && r.Keys != 7
	}},
	{"copy with `partSize`", func(s *suite, t *testing.T, c []byte) (client.Result, bool) {
		size := s.PartSize + 5000
		s.must(t, client.Request{Verb: client.Put, Container: c, Object: []byte("o"), Size: size, Writer: 1})
		r := s.do(t, client.Request{Verb: client.Copy, Container: c, Object: []byte("o"), To: []byte("p"),
			PartSize: s.PartSize, PartConcurrency: 2, Writer: 3})
		got := s.do(t, client.Request{Verb: client.Get, Container: c, Object: []byte("p"), Length: -1})
		return r, r.OK() && got.Bytes != size
	}},
}

// marks is how many keys of a container are CNSBench's own.
func (s *suite) marks(t *testing.T, c []byte) int {
	return s.must(t, client.Request{Verb: client.List, Container: c, Object: []byte(client.Marker), MaxKeys: 1}).Keys
}

func (s *suite) put(t *testing.T, c []byte, name string, writer uint64) {
	t.Helper()
	s.must(t, client.Request{Verb: client.Put, Container: c, Object: []byte(name), Size: 4096, Writer: writer})
}

func (s *suite) head(t *testing.T, c []byte, name string) client.Result {
	t.Helper()
	return s.do(t, client.Request{Verb: client.Head, Container: c, Object: []byte(name)})
}

// call is an operation of the object "o".
func (s *suite) call(t *testing.T, c []byte, name string) client.Result {
	t.Helper()
	return s.do(t, client.Request{Verb: client.Call, Call: name, Container: c, Object: []byte("o"), Length: -1,
		MaxKeys: 1000, Verify: true})
}

// onObject is a call of an object that exists.
func onObject(name string) func(*suite, *testing.T, []byte) (client.Result, bool) {
	return func(s *suite, t *testing.T, c []byte) (client.Result, bool) {
		s.put(t, c, "o", 1)
		return s.call(t, c, name), false
	}
}

// withOptions makes a container with options, if the store has them, and removes it after the test.
func (s *suite) withOptions(t *testing.T, name string, o option.Set) ([]byte, client.Result) {
	t.Helper()
	c := []byte(s.Prefix + name)
	made := s.do(t, client.Request{Verb: client.MakeContainer, Container: c, Options: &o})
	t.Cleanup(func() { s.empty(t, c) })
	return c, made
}

// empty removes all objects of a container, and then the container with the versions that are left.
func (s *suite) empty(t *testing.T, c []byte) {
	t.Helper()
	list := s.do(t, client.Request{Verb: client.List, Container: c, MaxKeys: 1000, Names: true})
	for _, name := range list.Names {
		if name != client.Marker {
			s.do(t, client.Request{Verb: client.Delete, Container: c, Object: []byte(name), Parts: true})
		}
	}
	if res := s.do(t, client.Request{Verb: client.RemoveContainer, Container: c}); !res.OK() && !res.Absent() {
		t.Errorf("%s is left: %s %s", c, res.Label(), res.Detail)
	}
}

// versioned is a call of an object with two versions.
func versioned(name string) func(*suite, *testing.T, []byte) (client.Result, bool) {
	return func(s *suite, t *testing.T, _ []byte) (client.Result, bool) {
		c, made := s.withOptions(t, name, option.Set{Versioning: true})
		if !made.OK() {
			return made, false
		}
		s.put(t, c, "o", 1)
		s.put(t, c, "o", 2)
		r := s.call(t, c, name)
		if r.OK() && name == "readversion" && (r.Writer != 1 || r.Bytes != 4096) {
			t.Errorf("the oldest version has write %d with %d bytes, want 1 with 4096", r.Writer, r.Bytes)
		}
		left := s.call(t, c, "listversions")
		if r.OK() && name == "deleteversion" && left.Keys != 1 {
			t.Errorf("%d versions are left of two", left.Keys)
		}
		return r, false
	}
}

// locked puts a retention or a hold on an object of a container with object lock, and gets it. A store that does not
// know them may take the first for another write of the object.
func locked(put, get string) func(*suite, *testing.T, []byte) (client.Result, bool) {
	return func(s *suite, t *testing.T, _ []byte) (client.Result, bool) {
		c, made := s.withOptions(t, get, option.Set{ObjectLock: true})
		if !made.OK() {
			return made, false
		}
		s.put(t, c, "o", 1)
		if res := s.call(t, c, put); !res.OK() {
			return res, false
		}
		res := s.call(t, c, get)
		object := s.do(t, client.Request{Verb: client.Get, Container: c, Object: []byte("o"), Length: -1})
		return res, res.OK() && (res.Keys != 1 || object.Bytes != 4096)
	}
}

// written writes an object with options, at once and in parts, and reads it with them.
func written(o option.Set) func(*suite, *testing.T, []byte) (client.Result, bool) {
	return func(s *suite, t *testing.T, c []byte) (client.Result, bool) {
		put := s.do(t, client.Request{Verb: client.Put, Container: c, Object: []byte("o"), Size: 70_000, Writer: 1,
			Options: &o})
		if !put.OK() || put.Code != "" {
			return put, put.OK()
		}
		read := client.Request{Verb: client.Get, Container: c, Object: []byte("o"), Length: -1, Verify: true, Options: &o}
		got := s.do(t, read)
		if got.OK() && o.Encryption == option.SSEC {
			read.Options = nil
			without := s.do(t, read)
			return got, without.OK() // it was not encrypted with the key
		}
		parts := client.Request{Verb: client.PutParts, Container: c, Object: []byte("p"), Size: s.PartSize + 5000,
			PartSize: s.PartSize, PartConcurrency: 2, Writer: 2, Options: &o}
		if got.OK() {
			got = s.do(t, parts)
		}
		return got, false
	}
}

// Offers tries each operation and option once, and compares what the store answered with its column of the table in the
// file, which is the documentation.
func Offers(t *testing.T, o Options, column string) {
	c, err := o.Store.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s := &suite{o, c}
	found := map[string]string{}
	for i, one := range offers {
		t.Run(strings.Trim(one.name, "`"), func(t *testing.T) {
			name := []byte(fmt.Sprintf("%soffer%d", s.Prefix, i))
			s.must(t, client.Request{Verb: client.MakeContainer, Container: name})
			t.Cleanup(func() { s.empty(t, name) })
			res, ignored := one.run(s, t, name)
			switch {
			case ignored, res.Code == "NoChecksum":
				found[one.name] = ignoredText
			case res.OK():
				found[one.name] = "yes"
			case res.Failure != "" || res.Status == 500:
				t.Errorf("%s %s", res.Label(), res.Detail)
			default:
				t.Logf("%s %s", res.Label(), res.Detail)
				found[one.name] = "no: " + strings.TrimSuffix(res.Label(), " "+client.NotOffered)
			}
		})
	}
	tableOf(t, column, found)
}

// offersTable is in docs/reference/object.md.
const offersTable = "<!-- offers -->\n"

func tableOf(t *testing.T, column string, found map[string]string) {
	t.Helper()
	file := filepath.Join(repository(t), "docs", "reference", "object.md")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), offersTable)
	table, after, ended := strings.Cut(rest, "\n\n")
	if !ok || !ended {
		t.Fatalf("%s has no table behind %s", file, offersTable)
	}
	lines := strings.Split(table, "\n")
	head := cells(lines[0])
	at := slices.Index(head, column)
	if at < 0 {
		t.Fatalf("%s has no column %q: %q", file, column, head)
	}
	rows := map[string][]string{}
	for _, line := range lines[2:] {
		rows[cells(line)[0]] = cells(line)
	}
	out := lines[:2]
	for _, one := range offers {
		row := rows[one.name]
		if len(row) != len(head) {
			row = append([]string{one.name}, slices.Repeat([]string{"?"}, len(head)-1)...)
		}
		if got, tried := found[one.name]; tried && got != row[at] {
			if !*updateOffers {
				t.Errorf("%s: %s; the documentation says %s", one.name, got, row[at])
			}
			row[at] = got
		}
		out = append(out, "| "+strings.Join(row, " | ")+" |")
	}
	if *updateOffers {
		text := before + offersTable + strings.Join(out, "\n") + "\n\n" + after
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func cells(line string) []string {
	all := strings.Split(strings.Trim(line, "| "), "|")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}

// repository is the root of the repository, from the working directory upwards.
func repository(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "CONTRIBUTING.md")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("the working directory is not in the repository")
		}
	}
}
