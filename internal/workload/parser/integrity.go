package parser

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/integrity"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// The metrics of the workload integrity and of checkSpec.
var (
	integrityWrites = countOf("writes", "writes of blocks, up to the last that is known to be synced")
	integrityIOPS   = declare("write"+metric.IOPS, metric.PerSecond, metric.Rate, "",
		"writes per second, with the syncs between")
	integrityAge = timeOf("age", metric.Level,
		"how old the newest write in an image was when its snapshot or clone was ready, at most")
	integrityChecks = countOf("checks",
		"images of the volume that were checked; of the workload, at its start and its end")
	integrityChecked    = countOf("blocks", "blocks that were read and checked")
	integrityViolations = faultsOf("violations", "violations of all kinds")
	integrityReordered  = countOf("reordered",
		"writes after the last sync that are missing although later ones are there, which is allowed")

	// integrityCounts are the metrics that are sums over the reports.
	integrityCounts = []metric.Declaration{integrityViolations,
		faultsOf(string(integrity.KindStale),
			"blocks without a write that was synced, while a write is there that began later"),
		faultsOf(string(integrity.KindTorn), "blocks that no write left so"),
		faultsOf(string(integrity.KindMisplaced), "blocks of another place"),
		faultsOf(string(integrity.KindForeign), "blocks of another writer"),
		faultsOf(string(integrity.KindLost),
			"writes that were acknowledged as synced before the image was made, and are missing with all later ones"),
		faultsOf(string(integrity.KindLate),
			"writes that began after the snapshot or clone was ready, and are in it"),
		integrityChecks, integrityChecked, integrityReordered}

	integrityMetrics = slices.Concat(integrityCounts, []metric.Declaration{integrityAge, integrityWrites, integrityIOPS})
)

// IntegrityName is the name of the parser.
const IntegrityName = "integrity"

// Integrity reads what the workload integrity wrote: its acknowledgements (acks), and its reports on the volume at its
// start (start.json) and at its end (end.json); or, of an image of its volume, the report on that (image.json). Reports
// are compared with the acknowledgements of the containers before.
func Integrity(in Input) (Result, error) {
	p := &integrityRun{work: work{in: in}, sums: map[string]float64{}}
	return p.run(IntegrityName, "there is no report: the writer ended before it had checked its volume", p.readAll,
		p.results)
}

// readAll reads the acknowledgements and the reports.
func (p *integrityRun) readAll() (bool, error) {
	for epoch, of := range p.in.Earlier {
		acks, err := acksIn(of, epoch)
		if err != nil {
			return false, err
		}
		p.earlier.Stream = cmp.Or(acks.Stream, p.earlier.Stream)
		p.earlier.List = append(p.earlier.List, acks.List...)
	}
	own, err := acksIn(Outputs{p.in.Files, p.in.AtWall}, 0)
	if err != nil {
		return false, err
	}
	err = p.walk(p.read, ".json")
	p.writes(own.List)
	return p.reports > 0 || len(own.List) > 0, err
}

// integrityRun is the work on one container's files, or on one image.
type integrityRun struct {
	work
	earlier integrity.Acks
	reports int
	sums    map[string]float64 // by metric
}

// acksIn reads the acknowledgements among the files of a container, on the run's clock.
func acksIn(of Outputs, epoch int) (acks integrity.Acks, err error) {
	err = fs.WalkDir(of.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Base(name) != "acks" {
			return err
		}
		f, err := of.Files.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		acks, err = integrity.ParseAcks(f)
		return err
	})
	for i := range acks.List {
		a := &acks.List[i]
		a.Epoch = epoch
		if of.AtWall != nil {
			a.At = int64(of.AtWall(a.At))
		}
	}
	return acks, err
}

// maxImageReport bounds a report: its missing writes are.
const maxImageReport = 1 << 20

func (p *integrityRun) read(name string) error {
	what := map[string]string{"start.json": "at the start", "end.json": "at the end", "image.json": "in the image"}
	of, known := what[path.Base(name)]
	if !known {
		return nil
	}
	text, err := bounded.ReadFile(p.in.Files, name, maxImageReport)
	if err != nil {
		return err
	}
	var r integrity.Report
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p.judge(of, &r)
	return nil
}

// judge compares a report with the acknowledgements before it, and counts it.
func (p *integrityRun) judge(of string, r *integrity.Report) {
	atEnd := strings.HasSuffix(of, "end") // of the same writer, which knew
	switch {
	case len(p.earlier.List) > 0 && !atEnd:
		p.compare(r)
	case p.in.Made != nil && r.Checked == 0:
		p.warn("integrityUnknown", "no block of the workload integrity was found, and no writer of the volume is known")
	case p.in.Made != nil:
		p.warn("integrityUnknown", "the writer of the volume is not known: no lost or late writes can be found")
	}
	p.reports++
	p.sums[integrityChecked.Name] += float64(r.Checked)
	p.sums[integrityReordered.Name] += float64(len(r.Missing))
	p.sums[integrityViolations.Name] += float64(r.Violations())
	var kinds []string
	for _, k := range integrity.Kinds {
		if n := r.Counts[k]; n > 0 {
			p.sums[string(k)] += float64(n)
			kinds = append(kinds, fmt.Sprintf("%d %s", n, k))
		}
	}
	if len(kinds) > 0 && r.First != nil {
		p.warn("integrityViolated", "%s: %s; first: %s", of, strings.Join(kinds, ", "), r.First)
	}
}

// compare adds what follows from the acknowledgements of earlier containers.
func (p *integrityRun) compare(r *integrity.Report) {
	r.Expect(p.earlier.Stream)
	cut := integrity.Cut{From: math.MaxInt64, To: math.MaxInt64}
	if p.in.Made != nil {
		cut = integrity.Cut{From: int64(p.in.Made.From), To: int64(p.in.Made.To)}
	}
	if age, known := r.Compare(p.earlier.List, cut); known && p.in.Made != nil {
		p.scalar(integrityAge, float64(age))
	}
}

// writes counts the writes between the first and the last acknowledgement.
func (p *integrityRun) writes(acks []integrity.Ack) {
	if len(acks) < 2 {
		return
	}
	first, last := acks[0], acks[len(acks)-1]
	n := float64(last.Generation - first.Generation)
	p.scalar(integrityWrites, n)
	if p.in.AtWall == nil || last.At <= first.At {
		return
	}
	p.scalar(integrityIOPS, n/time.Duration(last.At-first.At).Seconds())
	series, far := integrityIOPS.Series(int64(time.Second)), 0
	for i, a := range acks[1:] {
		at := int((a.At - first.At) / int64(time.Second))
		if at < 0 || at >= maxCells {
			far++
			continue
		}
		for len(series.Points) <= at {
			series.Points = append(series.Points, metric.Point{At: op.Time(first.At) + op.Time(len(series.Points))*aSecond})
		}
		series.Points[at].Value += float64(a.Generation - acks[i].Generation)
	}
	if far > 0 {
		p.warn("outputUnread", "%d writes were acknowledged before the first one, or more than %d s after it: the rate "+
			"lacks them", far, maxCells)
	}
	if n := len(series.Points); n > 1 { // the last second is not whole
		series.Points = series.Points[:n-1]
		p.res.Series = append(p.res.Series, series)
	}
}

// results adds the counts.
func (p *integrityRun) results() {
	p.sums[integrityChecks.Name] = float64(p.reports)
	for _, d := range integrityCounts {
		p.scalar(d, p.sums[d.Name])
	}
}
