package capture

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/decode"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/trace"
)

// Audit is the result of reading an audit log.
type Audit struct {
	Records []trace.Record
	Events  int // in the log
	// Bare counts writes that were logged without their objects (level Metadata): only creations and deletions by
	// name are known of them.
	Bare int
	// Unread counts the lines that are no events; First is the first of them.
	Unread int
	First  Unread
	// Torn is the number of the last line if it is cut off, else 0.
	Torn int
}

// Unread is a line that was left out.
type Unread struct {
	Line int    // from 1
	Text string // its begin
}

// event has the used fields of an audit.k8s.io/v1 Event.
type event struct {
	APIVersion string `json:"apiVersion"`
	Stage      string `json:"stage"`
	RequestURI string `json:"requestURI"`
	Verb       string `json:"verb"`
	ObjectRef  *struct {
		Resource    string `json:"resource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	ResponseStatus *struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	RequestObject  json.RawMessage  `json:"requestObject"`
	ResponseObject json.RawMessage  `json:"responseObject"`
	Received       metav1.MicroTime `json:"requestReceivedTimestamp"`
	Stamp          metav1.MicroTime `json:"stageTimestamp"`
}

// resources are the captured resources, by their name in URLs.
var resources = map[string]func() metav1.Object{
	"persistentvolumeclaims": func() metav1.Object { return new(corev1.PersistentVolumeClaim) },
	"volumesnapshots":        func() metav1.Object { return new(api.VolumeSnapshot) },
	"volumeattachments":      func() metav1.Object { return new(storagev1.VolumeAttachment) },
	"pods":                   func() metav1.Object { return new(corev1.Pod) },
}

const (
	// maxEvent bounds a line of the log: an object has at most 1.5 MiB, and a line may have two objects or a list.
	maxEvent = 64 << 20
	// maxLog bounds the decompressed text of a log, which is read as a stream.
	maxLog = 1 << 40
	// maxQuote is how many bytes of an unread line are quoted.
	maxQuote = 100
	// maxPrefix is the most words before an event: the name of a node, a time, and a stream and tag.
	maxPrefix = 4
)

// FromAudit reads an API server's audit log, as JSON lines of audit.k8s.io/v1, in any encoding that package decode
// reads. Before each event there may be the name of a node or pod (oc adm node-logs, kubectl logs --prefix) and a time
// (kubectl logs --timestamps). The trace begins with the log. An operation begins when its request was received, to the
// microsecond, and ends when the request that completed it was answered. Requests without a change (refused, dry run)
// count only as failed creations.
//
// Lines that are no events are counted and left out, and so is a last line that is cut off. It is an error if no line
// is an event, if another line is invalid, or if lines are of several nodes: their times are not in order. Errors name
// the line.
func FromAudit(r io.Reader) (Audit, error) {
	var a Audit
	text, err := decode.NewReader(r, maxLog)
	if err != nil {
		return a, fmt.Errorf("audit log: %w", err)
	}
	defer text.Close()
	from := bufio.NewReaderSize(text, 1<<20)
	l := auditLog{audit: &a}
	for ended := false; !ended; {
		l.line, err = bounded.AppendLine(l.line[:0], from, maxEvent)
		l.number++
		if ended = errors.Is(err, io.EOF); err != nil && !ended {
			return a, fmt.Errorf("audit log: line %d: %w", l.number, err)
		}
		if err := l.read(ended); err != nil {
			return a, fmt.Errorf("audit log: line %d: %w", l.number, err)
		}
	}
	if l.tracker == nil {
		return a, a.noEvents()
	}
	a.Records = l.tracker.Trace(int64(l.end.Sub(l.start)))
	for i := range a.Records {
		if err := a.Records[i].Check(); err != nil {
			return a, fmt.Errorf("audit log: %w", err)
		}
	}
	return a, nil
}

// auditLog is a log that is being read.
type auditLog struct {
	audit      *Audit
	tracker    *Tracker // nil before the first event
	start, end time.Time
	line       []byte
	number     int
	node       string // before the events, with those of a container's stream; "": none
}

// read reads the current line. cut says that it has no end.
func (l *auditLog) read(cut bool) error {
	line := bytes.TrimSpace(l.line)
	if len(line) == 0 {
		return nil
	}
	node, text, ok := splitEvent(line)
	var e event
	var err error
	if ok {
		err = json.Unmarshal(text, &e)
	}
	var syntax *json.SyntaxError
	switch {
	case cut && (!ok || errors.As(err, &syntax) && syntax.Offset >= int64(len(text))):
		l.audit.Torn = l.number
		return nil
	case err != nil:
		return err
	case !ok || e.Received.IsZero() && e.Stage == "" && !strings.HasPrefix(e.APIVersion, "audit.k8s.io/"):
		l.unread(line)
		return nil
	case e.Received.IsZero() || e.Stamp.Before(&e.Received):
		return errors.New("it has no times of an audit.k8s.io/v1 Event")
	case l.tracker != nil && node != l.node:
		return fmt.Errorf("it is of %q, lines before it of %q: want the log of one API server, or the events of all in "+
			"order of time, without names: cut -d' ' -f2- LOG | jq -cs 'sort_by(.stageTimestamp)[]'", node, l.node)
	}
	l.audit.Events++
	if l.tracker == nil {
		l.start, l.node = e.Received.Time, node
		l.tracker = New(l.start)
	}
	if e.Stamp.After(l.end) {
		l.end = e.Stamp.Time
	}
	return l.audit.event(l.tracker, &e, l.start)
}

// unread counts a line that is no event.
func (l *auditLog) unread(line []byte) {
	if l.audit.Unread++; l.audit.Unread == 1 {
		l.audit.First = Unread{Line: l.number, Text: bounded.Text(string(line), maxQuote)}
	}
}

// splitEvent splits a line into the words before its JSON object, without times, and the object; false if it has none,
// or is no line of a log of events.
func splitEvent(line []byte) (node string, object []byte, ok bool) {
	at := bytes.IndexByte(line, '{')
	if at < 0 {
		return "", nil, false
	}
	words := strings.Fields(string(line[:min(at, 1<<10)]))
	inner := bytes.TrimSpace(line[at+1:])
	if len(words) > maxPrefix || at > 0 && line[at-1] != ' ' && line[at-1] != '\t' ||
		len(inner) > 0 && inner[0] != '"' && inner[0] != '}' {
		return "", nil, false
	}
	words = slices.DeleteFunc(words, func(w string) bool {
		_, err := time.Parse(time.RFC3339Nano, w)
		return err == nil
	})
	return strings.Join(words, " "), line[at:], true
}

// noEvents is the error of a log without any event.
func (a *Audit) noEvents() error {
	switch {
	case a.Unread > 0:
		return fmt.Errorf("audit log: line %d: it is no audit.k8s.io/v1 Event, and neither is another: %q", a.First.Line,
			a.First.Text)
	case a.Torn > 0:
		return fmt.Errorf("audit log: line %d: it is cut off, and no line before it is an event", a.Torn)
	}
	return errors.New("audit log: it is empty: want JSON lines of audit.k8s.io/v1")
}

// event handles one event.
func (a *Audit) event(t *Tracker, e *event, start time.Time) error {
	if e.Stage != "ResponseComplete" || e.ObjectRef == nil || e.ResponseStatus == nil ||
		strings.Contains(e.RequestURI, "dryRun=") {
		return nil
	}
	empty, own := resources[e.ObjectRef.Resource]
	switch e.ObjectRef.Subresource {
	case "", "status", "resize":
	default:
		return nil
	}
	switch e.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
	default:
		return nil
	}
	if !own {
		return nil
	}
	asked, at := int64(e.Received.Sub(start)), int64(e.Stamp.Sub(start))
	if e.ResponseStatus.Code/100 != 2 {
		return a.refused(t, e, empty(), asked, at)
	}
	objects, logged, err := e.objects(empty)
	if err != nil {
		return err
	}
	if !logged {
		a.bare(t, e, empty(), asked, at)
	}
	for _, o := range objects {
		if o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 && gracePassed(o) || e.Verb == "delete" &&
			o.GetDeletionTimestamp() == nil {
			t.Gone(o, asked, at)
			continue
		}
		t.See(o, asked, at)
	}
	return nil
}

// gracePassed says whether nothing holds a deleted object any more.
func gracePassed(o metav1.Object) bool {
	g := o.GetDeletionGracePeriodSeconds()
	return g == nil || *g == 0
}

// objects returns the objects of the answer; logged is false if the log has no answer.
func (e *event) objects(empty func() metav1.Object) (list []metav1.Object, logged bool, err error) {
	var head struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	if len(e.ResponseObject) == 0 {
		return nil, false, nil
	}
	if err := json.Unmarshal(e.ResponseObject, &head); err != nil {
		return nil, true, fmt.Errorf("responseObject: %w", err)
	}
	if head.Kind == "Status" {
		return nil, false, nil
	}
	raw := head.Items
	if !strings.HasSuffix(head.Kind, "List") {
		raw = []json.RawMessage{e.ResponseObject}
	}
	for _, text := range raw {
		o := empty()
		if err := json.Unmarshal(text, o); err != nil {
			return nil, true, fmt.Errorf("%s %s/%s: %w", e.Verb, e.ObjectRef.Namespace, e.ObjectRef.Name, err)
		}
		list = append(list, o)
	}
	return list, true, nil
}

// refused handles a failed request; only creations become operations.
func (a *Audit) refused(t *Tracker, e *event, o metav1.Object, asked, at int64) error {
	if e.Verb != "create" || len(e.RequestObject) == 0 {
		return nil
	}
	if err := json.Unmarshal(e.RequestObject, o); err != nil {
		return nil //nolint:nilerr // it may be the reason of the refusal
	}
	o.SetNamespace(e.ObjectRef.Namespace)
	t.Failed(o, asked, at)
	return nil
}

// bare handles a write without a logged object.
func (a *Audit) bare(t *Tracker, e *event, o metav1.Object, asked, at int64) {
	a.Bare++
	if e.ObjectRef.Name == "" || e.ObjectRef.Resource == "pods" || e.ObjectRef.Subresource != "" {
		return
	}
	o.SetName(e.ObjectRef.Name)
	o.SetNamespace(e.ObjectRef.Namespace)
	if uid, known := t.uid(o); known {
		o.SetUID(uid)
	} else {
		o.SetUID(types.UID(e.ObjectRef.Resource + "/" + e.ObjectRef.Namespace + "/" + e.ObjectRef.Name))
	}
	switch e.Verb {
	case "create":
		t.See(o, asked, at)
	case "delete":
		t.Gone(o, asked, at)
	}
}
