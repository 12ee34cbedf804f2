package podrunner

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/bundle/server"
)

// logTimeout is how long the rest of a failed runner's log may take.
const logTimeout = 3 * time.Second

// Follow prints the log and copies the bundle until the runner has closed it, and returns the run's exit code. When
// ctx ends, it asks the runner to end, and waits for that.
func (r *Runner) Follow(ctx context.Context) (code int, err error) {
	whole, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	logged := make(chan struct{})
	logs, stopLogs := context.WithCancel(context.WithoutCancel(ctx))
	go func() { defer close(logged); r.copyLog(logs) }()
	defer func() {
		time.AfterFunc(logTimeout, stopLogs)
		if err != nil {
			<-logged // it has the reason
		}
		stopLogs()
	}()
	asked := context.AfterFunc(ctx, func() {
		fmt.Fprintln(r.Log, "\nasking the runner to end and to clean up")
		if err := r.Set.CoreV1().Pods(r.Namespace).Delete(whole, r.Name(), metav1.DeleteOptions{}); err != nil {
			fmt.Fprintln(r.Log, "ask the runner to end:", err)
		}
	})
	defer asked()
	lost := r.watchLoss(whole, cancel)
	err = r.copyBundle(whole)
	if reason := lost(); reason != "" {
		err = errors.Join(errors.New(reason), err)
	}
	if err != nil {
		return 0, err
	}
	b, err := bundle.Open(r.Flags.Out)
	if err != nil {
		return 0, err
	}
	return b.Run.ExitCode, nil
}

// watchLoss calls cancel when the pod is gone, or has ended without closing its bundle. The returned function stops
// it and returns the reason, if any.
func (r *Runner) watchLoss(ctx context.Context, cancel func()) func() string {
	reason := make(chan string, 1)
	go func() {
		defer close(reason)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			p, err := r.Set.CoreV1().Pods(r.Namespace).Get(ctx, r.Name(), metav1.GetOptions{})
			switch {
			case ctx.Err() != nil:
				return
			case apierrors.IsNotFound(err):
				reason <- "the runner's pod is gone"
			case err == nil && ended(p):
				reason <- "the runner's pod has ended: " + endOf(p)
			default:
				continue
			}
			time.Sleep(2 * time.Second) // the copy may be about to finish
			cancel()
			return
		}
	}()
	return func() string {
		cancel()
		return <-reason
	}
}

func endOf(p *corev1.Pod) string {
	for _, c := range p.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil {
			return fmt.Sprintf("%s, exit code %d %s", t.Reason, t.ExitCode, t.Message)
		}
	}
	return p.Status.Reason + " " + p.Status.Message
}

// copyLog prints the pod's log, from when there is one until the pod has ended. After a broken connection it goes on
// with the next line.
func (r *Runner) copyLog(ctx context.Context) {
	var last time.Time // of the last line
	for {
		p, err := r.Set.CoreV1().Pods(r.Namespace).Get(ctx, r.Name(), metav1.GetOptions{})
		gone, over := apierrors.IsNotFound(err), err == nil && ended(p)
		o := &corev1.PodLogOptions{Follow: true, Timestamps: true}
		if !last.IsZero() {
			o.SinceTime = &metav1.Time{Time: last}
		}
		stream, err := r.Set.CoreV1().Pods(r.Namespace).GetLogs(r.Name(), o).Stream(ctx)
		if err == nil {
			last = copyLines(r.Log, stream, last)
			_ = stream.Close()
		}
		if gone && !last.IsZero() || over && err == nil {
			return
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			return
		}
	}
}

// copyLines copies the lines of a log with times that are later than last, without the times, and returns the time of
// the last line.
func copyLines(to io.Writer, log io.Reader, last time.Time) time.Time {
	in := bufio.NewReader(log)
	for {
		line, err := in.ReadString('\n')
		stamp, text, _ := strings.Cut(line, " ")
		at, unknown := time.Parse(time.RFC3339Nano, stamp)
		switch {
		case err != nil: // half a line is sent again
			return last
		case unknown != nil:
			_, _ = io.WriteString(to, line)
		case at.After(last):
			last = at
			_, _ = io.WriteString(to, text)
		}
	}
}

// copyBundle mirrors the bundle through port-forwards, from when the runner serves it until the runner has closed it.
func (r *Runner) copyBundle(ctx context.Context) error {
	dial := func(context.Context, string, string) (net.Conn, error) { return r.Forward(r.Name(), bundlePort) }
	client := &http.Client{Transport: &http.Transport{DialContext: dial}}
	defer client.CloseIdleConnections()
	service := &server.Client{URL: "http://runner", HTTP: client}
	remote, err := service.Run(r.Namespace, r.ID)
	if err != nil {
		return err
	}
	for {
		if _, err = remote.Info(ctx); err == nil {
			break
		}
		select {
		case <-time.After(300 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the runner does not serve its bundle: %w", err)
		}
	}
	log := func(line string) { fmt.Fprintln(r.Log, line) }
	_, err = server.Pull(ctx, remote, r.Flags.Out, server.Options{Log: log})
	return err
}
