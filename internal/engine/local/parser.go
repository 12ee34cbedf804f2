package local

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/agent"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/local/pod"
	"github.com/cnsbench/cnsbench/internal/op"
)

// parserDir is where a parser script finds itself and its file.
const parserDir = "/cnsbench"

var _ engine.Parser = (*Engine)(nil)

// Parse runs a script as a process of this machine, in mount, PID and network
// namespaces of its own; see engine.Parser. The image is not used.
func (e *Engine) Parse(ctx context.Context, p engine.Parsing) ([]byte, error) {
	if e.host == nil {
		return nil, &engine.Error{Code: "NotOpen", Message: "the engine was not opened: no parser is run"}
	}
	if err := present(p.Script.Interpreter()); err != nil {
		return nil, err
	}
	dir := filepath.Join(e.session.Dir, "parsers", p.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, failed(err)
	}
	defer os.RemoveAll(dir) // the session's directory is removed later in any case
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte(p.Script.Text), 0o755); err != nil {
		return nil, failed(err)
	}
	capture := agent.NewCapture(engine.MaxPrinted)
	running, err := e.host.Start(ctx, pod.Spec{
		Instance: p.Name, Pod: parserPod(p, script), Dir: filepath.Join(dir, "pod"), Alone: true, Sink: capture, MaxOutput: agent.CaptureOutput,
	}, op.NewTrace(e.session.Clock))
	if err != nil {
		return nil, err
	}
	select {
	case <-running.Done():
	case <-ctx.Done():
		running.Kill()
		<-running.Done()
		return capture.Outcome(op.ContainerEnd{}, fmt.Errorf("it was killed: %w", context.Cause(ctx)))
	}
	end := op.ContainerEnd{}
	for _, c := range running.End().Containers {
		end = c
	}
	return capture.Outcome(end, running.Ready(e.ctx))
}

// parserPod is a script and its file as a pod.
func parserPod(p engine.Parsing, script string) engine.Pod {
	at, file := path.Join(parserDir, "parser"), path.Join(parserDir, "output", filepath.Base(p.File))
	source := func(name, path string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}}
	}
	made := engine.Pod{Pod: corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: p.Name}}}
	made.Spec.Volumes = []corev1.Volume{source("script", script), source("file", p.File)}
	made.Spec.Containers = []corev1.Container{{
		Name: "parser", Command: []string{at, file},
		VolumeMounts: []corev1.VolumeMount{{Name: "script", MountPath: at, ReadOnly: true}, {Name: "file", MountPath: file, ReadOnly: true}},
	}}
	return made
}

func failed(err error) error {
	return &engine.Error{Code: "ParserFailed", Message: err.Error(), Err: err}
}

// present says whether this machine has a parser's interpreter.
func present(program string) error {
	if _, err := exec.LookPath(program); err == nil {
		return nil
	}
	message := fmt.Sprintf("there is no program %q", program)
	return &engine.Error{Code: "ProgramMissing", Message: message + "; " + pod.Hint(message)}
}
