package parser

import (
	"encoding/json"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cnsbench/cnsbench/internal/integrity"
	"github.com/cnsbench/cnsbench/internal/op"
)

var testStream = integrity.Stream{ID: 7, Seed: 1, Blocks: 100, BlockSize: 4096, SyncEvery: 10}

// image returns the report on an image that has all writes up to g but one.
func imageOf(t *testing.T, g, missing int64) *fstest.MapFile {
	t.Helper()
	blocks := make([]integrity.Block, testStream.Blocks)
	for i := range blocks {
		blocks[i].Generation = testStream.Last(int64(i), g)
		if blocks[i].Generation == missing {
			blocks[i].Generation = testStream.Last(int64(i), missing-1)
		}
	}
	text, err := json.Marshal(integrity.Judge(testStream, blocks, 0))
	if err != nil {
		t.Fatal(err)
	}
	return &fstest.MapFile{Data: text}
}

func acksOf(pairs ...int64) *fstest.MapFile {
	text := integrity.AcksHead(testStream)
	for i := 0; i < len(pairs); i += 2 {
		text += integrity.AckLine(pairs[i], pairs[i+1])
	}
	return &fstest.MapFile{Data: []byte(text)}
}

// wrote returns the outputs of one container on a machine whose wall clock is ahead.
func wrote(files fs.FS, ahead int64) []Outputs {
	return []Outputs{{files, func(unix int64) op.Time { return op.Time(unix - ahead) }}}
}

func TestIntegrityParser(t *testing.T) {
	const s = 1e9
	writer := fstest.MapFS{"output/acks": acksOf(1*s, 100, 2*s, 130, 3*s, 170, 4*s, 200)}
	ahead := fstest.MapFS{"output/acks": acksOf(3601*s, 100, 3602*s, 130, 3603*s, 170, 3604*s, 200)}
	other := fstest.MapFS{"output/acks": &fstest.MapFile{Data: []byte("stream 0000000000000009\n1000000000 100\n")}}
	made := func(from, to op.Time) *Interval { return &Interval{from, to} }
	for _, tt := range []struct {
		name    string
		files   fstest.MapFS
		earlier []Outputs
		made    *Interval
		want    map[string]float64 // others are 0
		says    string             // a warning
	}{
		{"intact", fstest.MapFS{"image.json": imageOf(t, 175, 0)}, wrote(writer, 0), made(3.1*s, 3.5*s),
			map[string]float64{"checks": 1, "blocks": 100, "age": 0.5 * s}, ""},
		{"stale", fstest.MapFS{"image.json": imageOf(t, 175, 165)}, wrote(writer, 0), made(3.1*s, 3.5*s),
			map[string]float64{"checks": 1, "blocks": 100, "age": 0.5 * s, "stale": 1, "violations": 1},
			"in the image: 1 stale; first: the block at "},
		{"too old", fstest.MapFS{"image.json": imageOf(t, 165, 0)}, wrote(writer, 0), made(3.1*s, 3.5*s),
			map[string]float64{"checks": 1, "blocks": 100, "age": 1.5 * s, "lost": 5, "violations": 5}, "170 was acknowledged"},
		{"too old, on a machine ahead", fstest.MapFS{"image.json": imageOf(t, 165, 0)}, wrote(ahead, 3600*s),
			made(3.1*s, 3.5*s),
			map[string]float64{"checks": 1, "blocks": 100, "age": 1.5 * s, "lost": 5, "violations": 5}, "170 was acknowledged"},
		{"intact, on a machine ahead", fstest.MapFS{"image.json": imageOf(t, 175, 0)}, wrote(ahead, 3600*s),
			made(3.1*s, 3.5*s),
			map[string]float64{"checks": 1, "blocks": 100, "age": 0.5 * s}, ""},
		{"too new", fstest.MapFS{"image.json": imageOf(t, 203, 0)}, wrote(writer, 0), made(3.1*s, 3.5*s),
			map[string]float64{"checks": 1, "blocks": 100, "age": 0.5 * s, "late": 3, "violations": 3}, "began after"},
		{"of another writer", fstest.MapFS{"image.json": imageOf(t, 165, 0)}, wrote(other, 0), made(3*s, 4*s),
			map[string]float64{"checks": 1, "blocks": 100, "foreign": 100, "lost": 100, "violations": 200}, "of another writer"},
		{"empty", fstest.MapFS{"image.json": {Data: []byte(`{"checked":0}`)}}, wrote(writer, 0), made(3.1*s, 3.5*s),
			map[string]float64{"checks": 1, "lost": 170, "violations": 170}, "170 was acknowledged"},
		{"writer not known", fstest.MapFS{"image.json": imageOf(t, 165, 0)}, nil, made(0, 0),
			map[string]float64{"checks": 1, "blocks": 100}, "writer of the volume is not known"},
		{"a writer", fstest.MapFS{"output/acks": writer["output/acks"], "output/start.json": imageOf(t, 100, 0),
			"output/end.json": imageOf(t, 200, 200)}, nil, nil,
			map[string]float64{"checks": 2, "blocks": 200, "writes": 100, "write.iops": 100. / 3}, ""},
		{"a replaced writer", fstest.MapFS{"output/start.json": imageOf(t, 195, 0)}, wrote(writer, 0), nil,
			map[string]float64{"checks": 1, "blocks": 100, "lost": 5, "violations": 5}, "at the start: 5 lost"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Integrity(Input{Files: tt.files, Earlier: tt.earlier, Made: tt.made,
				AtWall: func(unix int64) op.Time { return op.Time(unix) }})
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range got.Scalars {
				if off := v.Value - tt.want[v.Metric]; off > 1e-9 || off < -1e-9 {
					t.Errorf("%s is %v, want %v", v.Metric, v.Value, tt.want[v.Metric])
				}
				delete(tt.want, v.Metric)
			}
			if len(tt.want) > 0 {
				t.Errorf("no %v", tt.want)
			}
			said := ""
			for _, w := range got.Warnings {
				said += w.Code + ": " + w.Message + "\n"
			}
			if (said == "") != (tt.says == "") || !strings.Contains(said, tt.says) {
				t.Errorf("said %q, want %q", said, tt.says)
			}
		})
	}
}

func TestIntegrityBadOutput(t *testing.T) {
	for _, files := range []fstest.MapFS{{}, {"output/acks": {Data: []byte("noise\n")}},
		{"image.json": {Data: []byte("{")}}} {
		if got, err := Integrity(Input{Files: files}); err == nil {
			t.Errorf("%v: %+v", files, got)
		}
	}
}

func FuzzIntegrity(f *testing.F) {
	f.Add("stream 0000000000000007\n1000000000 100\n", `{"checked":1,"newest":5,"counts":{"torn":1},"missing":[4]}`)
	f.Add("stream 7", `{}`)
	f.Fuzz(func(_ *testing.T, acks, report string) {
		files := fstest.MapFS{"acks": {Data: []byte(acks)}, "image.json": {Data: []byte(report)},
			"end.json": {Data: []byte(report)}}
		_, _ = Integrity(Input{Files: files, Earlier: wrote(files, 0), Made: &Interval{1, 2},
			AtWall: func(unix int64) op.Time { return op.Time(unix) }})
	})
}

// TestIntegrityFarTimes: an acknowledgement far in time does not fill memory with seconds, and is counted.
func TestIntegrityFarTimes(t *testing.T) {
	p := integrityRun{work: work{res: Result{}, in: Input{AtWall: func(unix int64) op.Time { return op.Time(unix) }}}}
	p.writes([]integrity.Ack{{At: 1e9, Generation: 100}, {At: 2e9, Generation: 130}, {At: 1 << 60, Generation: 170}})
	if len(p.res.Warnings) != 1 || !strings.Contains(p.res.Warnings[0].Message, "1 writes were acknowledged") {
		t.Errorf("it does not say what it left out: %+v", p.res.Warnings)
	}
}
