package loadgen

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/selector"
	"github.com/cnsbench/cnsbench/internal/op"
)

func zipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Reads go to the keys of a list, an inventory or a prefix, and to no others.
func TestReadsOfExistingObjects(t *testing.T) {
	files := map[string]string{"list.txt": "a\nb c\nd/e\n", "inventory.csv": `"photos","a","1"` + "\n" +
		`"photos","b+c","2"` + "\n" + `"other","x","3"` + "\n" + `"photos","d%2Fe","4"` + "\n",
		"inventory.csv.gz": zipped(t, "photos,a\nphotos,b%20c\nphotos,d/e\n")}
	for _, name := range []string{"list.txt", "inventory.csv", "inventory.csv.gz", "prefix"} {
		keys := model.Keys{Prefix: "p"}
		if text, ok := files[name]; ok {
			keys = model.Keys{File: filepath.Join(t.TempDir(), name)}
			if err := os.WriteFile(keys.File, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, inOrder := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s %v", name, inOrder), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := &fake{takes: func(r *client.Request, _ op.Time) (time.Duration, func(*client.Result)) {
						return time.Millisecond, func(res *client.Result) {
							if r.Verb == client.List && string(r.Object) == "p" && r.Page == "" {
								res.Names, res.Next = []string{"a", "b c"}, "more"
							} else if r.Verb == client.List && r.Page == "more" {
								res.Names = []string{client.Marker, "d/e"}
							}
						}
					}}
					o := model.Op{Type: model.Read, Name: "read", Weight: 100, Keys: keys, InOrder: inOrder,
						ContainerName: model.Name{Prefix: "photos"}}
					r, _ := run(context.Background(), f, stageOf(model.Work{Name: "w", Workers: 2, TotalOps: 60,
						Ops: []model.Op{o}}))
					if r.Err != nil {
						t.Fatal(r.Err)
					}
					var read []string
					for what, n := range f.seen {
						if key, ok := strings.CutPrefix(what, fmt.Sprintf("%d photos/", client.Get)); ok {
							read = append(read, key)
							if inOrder && n != 20 {
								t.Errorf("%s was read %d times, want 20", key, n)
							}
						}
					}
					slices.Sort(read)
					if want := []string{"a", "b c", "d/e"}; !slices.Equal(read, want) {
						t.Errorf("%q were read, want %q", read, want)
					}
				})
			})
		}
	}
}

func TestKeysThatCannotBeRead(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.txt")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{empty: "there are none",
		"/absent": "stage s-normal: line 9: the keys of read: open /absent: no such file"} {
		o := model.Op{Type: model.Read, Name: "read", Line: 9, Weight: 100, Keys: model.Keys{File: file},
			Containers: selector.Spec{Kind: selector.Constant, Low: 1, High: 1}}
		f := &fake{takes: always(0)}
		if r, _ := run(t.Context(), f, stageOf(model.Work{Name: "w", Line: 8, Workers: 1, TotalOps: 1,
			Ops: []model.Op{o}})); r.Err == nil || !strings.Contains(r.Err.Error(), want) {
			t.Errorf("%s: %v, want %q", file, r.Err, want)
		}
	}
}

// Each request of an operation in parts has figures beside those of the operation, which it does not change.
func TestStepsHaveFiguresOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{takes: func(r *client.Request, at op.Time) (time.Duration, func(*client.Result)) {
			return 100 * time.Millisecond, func(*client.Result) {
				if r.Steps == nil { // the check of the owner
					return
				}
				for k, s := range []client.Step{client.Create, client.Part, client.Part, client.Complete} {
					r.Steps(s, &client.Result{Status: 200, Started: at, First: op.Never, Bytes: 5,
						Ended: at + op.Time(time.Duration(k+1)*time.Millisecond)})
				}
			}
		}}
		o := model.Op{Type: model.MultipartWrite, Name: "multipart", Weight: 100, PartSize: 4096, PartConcurrency: 2,
			Containers: selector.Spec{Kind: selector.Constant, Low: 1, High: 1},
			Objects:    selector.Spec{Kind: selector.Uniform, Low: 1, High: 50},
			Sizes:      selector.Sizes{Spec: selector.Spec{Kind: selector.Constant, Low: 8192, High: 8192}, Unit: 1}}
		r, _ := run(t.Context(), f, stageOf(model.Work{Name: "w", Workers: 1, TotalOps: 10, Ops: []model.Op{o}}))
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		figures := only(t, r.Stages[0])
		if figures.OK != 10 || figures.Bytes != 10*8192 || figures.Cell.Response.Max() < int64(100*time.Millisecond) {
			t.Errorf("%d operations with %d bytes, want 10 with %d", figures.OK, figures.Bytes, 10*8192)
		}
		got := map[client.Step]int64{}
		for _, s := range figures.Steps {
			got[s.Step] = s.OK
		}
		if got[client.Create] != 10 || got[client.Part] != 20 || got[client.Complete] != 10 || len(got) != 3 {
			t.Errorf("steps %v, want 10 creations, 20 parts and 10 completions", got)
		}
		m, err := r.Stages[0].Works[0].Metrics()
		if err != nil {
			t.Fatal(err)
		}
		n := map[string]int64{}
		for _, h := range m.Histograms {
			n[h.Metric] = h.Hist.N()
		}
		if n["multipart"] != 10 || n["multipart.part"] != 20 || n["multipart.complete"] != 10 {
			t.Errorf("the metrics have %v", n)
		}
	})
}
