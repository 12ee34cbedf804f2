package output

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/loadgen"
)

// mostHosts are listed for each stage, beside those that failed.
const mostHosts = 32

// hosts prints what each host had of each stage.
func hosts(out io.Writer, r *loadgen.Result) error {
	any, left := false, 0
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight)
	for i := range r.Stages {
		s := &r.Stages[i]
		for j := range s.Hosts {
			if !any {
				fmt.Fprintln(out, "\nBy host; late: when its works began, against the instant that was agreed.")
				fmt.Fprintln(w, "stage\twork\thost\tworkers\tok\tfailed\tlost\tops/s\tMB/s\tp50\tp99\tlate\tCPU\t\t")
				any = true
			}
			if j >= mostHosts && s.Hosts[j].Err == nil {
				left++
				continue
			}
			if err := hostRows(w, &s.Hosts[j]); err != nil {
				return err
			}
		}
	}
	if err := w.Flush(); err != nil || !any {
		return err
	}
	if left > 0 {
		fmt.Fprintf(out, "%d more lines, of hosts that ended well, are not shown; the bundle has them\n", left)
	}
	for i := range r.Stages {
		for j := range r.Stages[i].Hosts {
			if h := &r.Stages[i].Hosts[j]; h.Lost != nil {
				fmt.Fprintf(out, "%s: host %s was LOST: %v\n", h.Name, h.Host, h.Lost)
				for _, m := range h.Missing {
					fmt.Fprintf(out, "  %s\n", m)
				}
			}
		}
	}
	return nil
}

// hostRows prints a line for each work; what a mix has of operations is one.
func hostRows(w io.Writer, h *loadgen.HostResult) error {
	for i := range h.Works {
		figures, err := h.Works[i].Figures()
		if err != nil {
			return err
		}
		all := loadgen.Figures{Cell: loadgen.NewCell()}
		for _, f := range figures {
			all.OK, all.Failed, all.Lost, all.Bytes, all.Window = all.OK+f.OK, all.Failed+f.Failed, all.Lost+f.Lost,
				all.Bytes+f.Bytes, f.Window
			if err := all.Cell.Response.Merge(f.Cell.Response); err != nil {
				return err
			}
		}
		late := "–"
		if h.Start.Known() {
			late = fmt.Sprintf("%s ± %s", Duration(int64(h.Start-h.Intended)), Duration(h.StartErr))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%.1f\t%.2f\t%s\t%s\t%s\t%.0f %%\t%s\t\n", h.Name,
			h.Works[i].Work.Name, h.Host, h.Works[i].Work.Workers, all.OK, all.Failed, all.Lost,
			all.PerSecond(), all.Bandwidth()/1e6, response(&all, 0.5), response(&all, 0.99), late, 100*h.Usage.Busy(),
			verdict(h))
	}
	return nil
}

// verdict of a host on a stage.
func verdict(h *loadgen.HostResult) string {
	switch {
	case h.Lost != nil:
		return "LOST"
	case h.Err != nil:
		return "failed"
	case h.Usage.Wall < time.Second:
		return ""
	}
	b, _ := h.Bound()
	return string(b)
}
