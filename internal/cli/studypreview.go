package cli

import (
	"io"
	"strings"
	"text/tabwriter"

	"github.com/cnsbench/cnsbench/internal/storagedir"
	"github.com/cnsbench/cnsbench/internal/study"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// preview prints the trials in their order, and where their volumes would be. An existing study keeps its order.
func (f *studyFlags) preview(s *streams, d *study.Design, rooms []*storagedir.Room) error {
	begun, err := study.Resume(f.run.Out, d)
	if err != nil {
		return err
	}
	if begun != nil {
		d = begun.Design
	}
	return f.printPreview(s, d, rooms, begun == nil && d.Order.Drawn)
}

// previewNext prints the trials that add-occasion would run.
func (f *studyFlags) previewNext(s *streams, d *study.Design, rooms []*storagedir.Room, o study.Occasion) error {
	begun, err := study.Resume(f.run.Out, d)
	if err != nil {
		return err
	}
	if begun == nil {
		return f.printPreview(s, d, rooms, d.Order.Drawn)
	}
	next := *begun.Design
	if begun.Unfinished() == 0 {
		next.Trials = begun.NextTrials(o)
	}
	return f.printPreview(s, &next, rooms, false)
}

func (f *studyFlags) printPreview(s *streams, d *study.Design, rooms []*storagedir.Room, drawn bool) error {
	return s.print(f.run.output, previewOf(d, rooms), listTable(d.Trials, func(t *study.Trial) []any {
		return []any{t.Name, d.Cells[t.Cell].Name(), int64(t.Repetition), int64(t.Occasion), int64(t.Block),
			strings.Join(t.Set, " ")}
	}, "trial", "cell", "repetition", "occasion", "block", "set"), func() error {
		return writePreview(s.out, d, rooms, drawn)
	})
}

func writePreview(out io.Writer, d *study.Design, rooms []*storagedir.Room, drawn bool) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	for _, t := range d.Trials {
		visible.Fprintf(w, "%s\t%s\n", t.Name, strings.Join(t.Set, " "))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	order := d.Order.String()
	if drawn {
		order += " (drawn for this preview: a study without a seed draws its order when it starts)"
	}
	visible.Fprintf(out, "order of trials: %s\n", order)
	printRooms(out, d, rooms)
	_, err := visible.Fprintf(out, "%s, %s; nothing was created\n", count(len(d.Cells), "cell"),
		count(len(d.Trials), "trial"))
	return err
}

// printRooms prints what the volumes of each cell request of the storage directory. Trials run one after another, so
// that each has the whole directory.
func printRooms(w io.Writer, d *study.Design, rooms []*storagedir.Room) {
	said := false
	for i, r := range rooms {
		if r == nil {
			continue
		}
		if !said {
			visible.Fprintf(w, "storage: %v\n", r)
			said = true
		}
		for _, c := range r.Classes {
			visible.Fprintf(w, "cell %s: %v\n", d.Cells[i].Name(), c)
		}
		for _, open := range r.Open {
			visible.Fprintf(w, "cell %s: and by %s\n", d.Cells[i].Name(), open)
		}
		for _, warning := range r.Warnings {
			visible.Fprintf(w, "warning: cell %s: %s\n", d.Cells[i].Name(), warning)
		}
	}
}

// studyPreview is the preview as JSON.
type studyPreview struct {
	Name   string        `json:"name"`
	Order  *study.Order  `json:"order"`
	Trials []study.Trial `json:"trials"`
	Cells  []cellPreview `json:"cells"`
}

type cellPreview struct {
	study.Cell
	Storage *storagedir.Room `json:"storage,omitempty"`
}

func previewOf(d *study.Design, rooms []*storagedir.Room) studyPreview {
	p := studyPreview{Name: d.Name, Order: d.Order, Trials: d.Trials}
	for i, c := range d.Cells {
		p.Cells = append(p.Cells, cellPreview{c, rooms[i]})
	}
	return p
}
