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

// parserDir is the directory of a parser script and its file in the sandbox.
const parserDir = "/cnsbench"

var _ engine.Parser = (*Engine)(nil)

// Parse runs a script as a process of this machine in its own mount, PID and network namespaces; see
// engine.Parser. The image is not used.
func (e *Engine) Parse(ctx context.Context, p engine.ParseRequest) ([]byte, error) {
	if e.host == nil {
		return nil, &engine.Error{Code: "NotOpen", Message: "the engine is not open"}
	}
	if err := checkInterpreter(p.Script.Interpreter()); err != nil {
		return nil, err
	}
	dir := filepath.Join(e.session.Dir, "parsers", p.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, parserError(err)
	}
	defer os.RemoveAll(dir) // best effort: the session's directory is removed later
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte(p.Script.Text), 0o755); err != nil {
		return nil, parserError(err)
	}
	capture := agent.NewCapture(engine.MaxPrinted)
	running, err := e.host.Start(ctx, pod.Spec{
		Instance: p.Name, Pod: parserPod(p, script), Dir: filepath.Join(dir,
			"pod"), NoNetwork: true, Sink: capture, MaxOutput: agent.CaptureOutput,
	}, op.NewTrace(e.session.Clock))
	if err != nil {
		return nil, err
	}
	select {
	case <-running.Done():
	case <-ctx.Done():
		running.Kill()
		<-running.Done()
		return capture.Outcome(op.ContainerEnd{}, fmt.Errorf("killed: %w", context.Cause(ctx)))
	}
	end := op.ContainerEnd{}
	for _, c := range running.End().Containers {
		end = c
	}
	return capture.Outcome(end, running.Ready(e.ctx))
}

// parserPod returns the pod of a script and its file.
func parserPod(p engine.ParseRequest, script string) engine.Pod {
	at, file := path.Join(parserDir, "parser"), path.Join(parserDir, "output", filepath.Base(p.File))
	source := func(name, path string) corev1.Volume {
		return corev1.Volume{Name: name,
			VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}}
	}
	made := engine.Pod{Pod: corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: p.Name}}}
	made.Spec.Volumes = []corev1.Volume{source("script", script), source("file", p.File)}
	made.Spec.Containers = []corev1.Container{{
		Name: "parser", Command: []string{at, file},
		VolumeMounts: []corev1.VolumeMount{{Name: "script", MountPath: at, ReadOnly: true},
			{Name: "file", MountPath: file, ReadOnly: true}},
	}}
	return made
}

func parserError(err error) error {
	return &engine.Error{Code: "ParserFailed", Message: err.Error(), Err: err}
}

// checkInterpreter fails if this machine lacks a parser's interpreter.
func checkInterpreter(program string) error {
	if _, err := exec.LookPath(program); err == nil {
		return nil
	}
	message := fmt.Sprintf("there is no program %q", program)
	return &engine.Error{Code: "ProgramMissing", Message: message + "; " + pod.Hint(message)}
}
