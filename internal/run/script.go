package run

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/workload/parser"
)

const (
	// parseWithin is the timeout of a parser script for one file, including the pull of its image.
	parseWithin = 5 * time.Minute
	// parsersAtOnce is the maximum number of parser scripts that run at the same time.
	parsersAtOnce = 4
)

// parsing is one file that a workload's parser script reads.
type parsing struct {
	action, instance, container string
	file                        string // path in the container
	output                      plan.Output
}

func (p *parsing) source() string { return p.instance + "/" + p.container + p.file }

// scriptsFor returns the files of an instance that parser scripts read, and warns of outputs that do not
// exist.
func (r *runner) scriptsFor(a *plan.Action, instance string) []parsing {
	var list []parsing
	for _, o := range a.Workload.Outputs {
		if o.Script == "" || !r.begun(instance, o) {
			continue
		}
		for _, c := range r.instances.containers(instance, o.Container) {
			files := matching(os.DirFS(filepath.Join(r.RawDir, instance, c)), o.File)
			if len(files) == 0 {
				r.warnOf("outputMissing", instance+"/"+c,
					fmt.Sprintf("it wrote no %s, which parser %q was to read", o.File, o.Parser))
			}
			for _, f := range files {
				list = append(list, parsing{a.Name, instance, c, f, o})
			}
		}
	}
	return list
}

// rewritten matches the suffix of a file that was written again under an existing name.
var rewritten = regexp.MustCompile(`~[0-9]+$`)

// matching returns the files whose path in the container matches pattern.
func matching(files fs.FS, pattern string) (names []string) {
	_ = fs.WalkDir(files, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // what cannot be read is not there
		}
		name := "/" + p
		if ok, err := path.Match(pattern, rewritten.ReplaceAllString(name, "")); ok && err == nil {
			names = append(names, name)
		}
		return nil
	})
	return names
}

// parseByScript runs the parser scripts after the measurement. A failure of a script is a warning; the file
// that it reads is kept.
func (r *runner) parseByScript(list []parsing) {
	if len(list) == 0 {
		return
	}
	parser, ok := r.Engine.(engine.Parser)
	if !ok {
		r.warn("outputUnparsed", fmt.Sprintf("this engine runs no parser scripts: %d outputs are kept as they are",
			len(list)))
		return
	}
	r.Observer.Log("run", fmt.Sprintf("%d outputs are read by parser scripts", len(list)))
	type answer struct {
		printed []byte
		err     error
	}
	answers := make([]answer, len(list))
	ctx, stop := r.untilInterrupt()
	defer stop()
	var all sync.WaitGroup
	free := make(chan struct{}, parsersAtOnce)
	for i, p := range list {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			ctx, cancel := context.WithTimeoutCause(ctx, parseWithin,
				fmt.Errorf("it took longer than %v", parseWithin))
			defer cancel()
			answers[i].printed, answers[i].err = parser.Parse(ctx, engine.ParseRequest{
				Name: fmt.Sprintf("parse-%d", i), Script: engine.Script{Text: p.output.Script, Image: p.output.Image},
				File: filepath.Join(r.RawDir, p.instance, p.container, p.file),
			})
		})
	}
	all.Wait()
	if ctx.Err() != nil && r.result.State == bundle.Complete {
		r.note(ErrInterrupted) // files were not read: the results are not whole
	}
	for i := range list {
		r.printed(&list[i], answers[i].printed, answers[i].err)
	}
}

// untilInterrupt returns a context that ends with the next interrupt: the first one, unless that has ended the
// measurement already. Work on what was measured goes on after that one, until the second.
func (r *runner) untilInterrupt() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(r.hard)
	if r.soft == nil || r.soft.Err() != nil {
		return ctx, func() { cancel(nil) }
	}
	detach := context.AfterFunc(r.soft, func() { cancel(context.Cause(r.soft)) })
	return ctx, func() { detach(); cancel(nil) }
}

// printed stores the output of a script, and parses it if the script succeeded.
func (r *runner) printed(p *parsing, text []byte, err error) {
	if len(text) > 0 {
		if err := r.Record.Raw(p.instance, p.container, p.file+".parsed", text); err != nil {
			r.log(p.source(), fmt.Sprintf("what its parser printed is not kept: %v", err))
		}
	}
	if err != nil {
		r.warnOf("parserFailed", p.source(), fmt.Sprintf("parser %q: %v", p.output.Parser, err))
		return
	}
	result, err := parser.Printed(r.input(p.instance, p.container), text)
	r.take(origin{p.action, p.instance, p.source(), p.output.Phase}, result, err)
	r.flagRead(p.instance, p.container, map[string]bool{strings.TrimPrefix(p.file, "/"): true})
}

// begun reports whether the phase that writes an output began, and warns if it did not.
func (r *runner) begun(instance string, o plan.Output) bool {
	if o.Phase == 0 || r.instances.phaseBegan(instance, o.Phase) {
		return true
	}
	r.warnOf("phaseNotBegun", instance, fmt.Sprintf("phase %d never began: the instance had ended before", o.Phase))
	return false
}
