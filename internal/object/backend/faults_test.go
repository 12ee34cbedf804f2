package backend_test

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/backend"
	"github.com/cnsbench/cnsbench/internal/object/cosbench"
	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/loadtest"
)

// speaks listens and gives each connection, once a request has come, to answer.
func speaks(t *testing.T, answer func(c net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					answer(c)
				}
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

func says(text string) func(net.Conn) {
	return func(c net.Conn) { _, _ = io.WriteString(c, text) }
}

// waits until the other side has gone.
func waits(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

// endless sends the same text again and again, so often.
func endless(first, text string, pause time.Duration) func(net.Conn) {
	return func(c net.Conn) {
		_, err := io.WriteString(c, first)
		for err == nil {
			_, err = io.WriteString(c, text)
			time.Sleep(pause)
		}
	}
}

func nobody(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

func secured(t *testing.T) string {
	t.Helper()
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

// Whatever an endpoint does, a whole run against it ends in time, tells what it
// was by a word of its own, and does not ask more often than it rests.
func TestFaultsOfEndpoints(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	xml := func(status, code string) string {
		text := "<Error><Code>" + code + "</Code><Message>m</Message></Error>"
		return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", status, len(text), text)
	}
	tests := []struct {
		name, address, want string
	}{
		{"nobody listens", nobody(t), "refused"},
		{"no such name", "http://no-such-host.invalid", "unresolved"},
		{"it stalls", speaks(t, waits), "stalled"},
		{"it stalls within the answer", speaks(t, func(c net.Conn) {
			says(ok + "Content-Length: " +
				"5\r\n\r\nhe")(c)
			waits(c)
		}), "bodyStalled"},
		{"it goes on saying to go on", speaks(t, endless("", "HTTP/1.1 100 Continue\r\n\r\n", time.Millisecond)),
			"bodyStalled"},
		{"it closes", speaks(t, func(net.Conn) {}), "closed"},
		{"it resets", speaks(t, func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) }), "reset"},
		{"it cuts bodies short", speaks(t, says(ok+"Content-Length: 4096\r\n\r\nCNS1")), "cut"},
		{"it cuts heads short", speaks(t, says("HTTP/1.1 200 O")), "cut"},
		{"garbage", speaks(t, says("\x16\x03\x01 hello\r\n\r\n")), "garbage"},
		{"a head without end", speaks(t, endless(ok, strings.Repeat("X: y\r\n", 1000), 0)), "garbage"},
		{"it asks to slow down", speaks(t, says(xml("503 Slow Down", "SlowDown"))), "503 SlowDown"},
		{"it wants another key", speaks(t, says(xml("403 Forbidden", "InvalidAccessKeyId"))), "403 InvalidAccessKeyId"},
		{"it wants another secret", speaks(t, says(xml("403 Forbidden", "SignatureDoesNotMatch"))),
			"403 SignatureDoesNotMatch"},
		{"it wants another time", speaks(t, says(xml("403 Forbidden", "RequestTimeTooSkewed"))),
			"403 RequestTimeTooSkewed"},
		{"it wants a new token", speaks(t, says(xml("400 Bad Request", "ExpiredToken"))), "400 ExpiredToken"},
		{"a code of 10 MB", speaks(t, says(xml("500 Oops", strings.Repeat("x", 10<<20)))), "500"},
		{"another content", speaks(t, says(ok+"Content-Length: 5\r\nConnection: close\r\n\r\nhello")), "200 foreign"},
		{"another authority", secured(t), "tlsUntrusted"},
		{"no TLS", strings.Replace(speaks(t, waits), "http:", "https:", 1), "tls"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			timeout := 5 * time.Second // what else the machine does is no fault of the endpoint
			if strings.HasSuffix(tt.want, "talled") {
				timeout = 300 * time.Millisecond
			}
			f, took, failed := readFor(t, tt.address, timeout)
			if f.OK != 0 || failed == nil {
				t.Errorf("%d were done, and the run failed: %v", f.OK, failed)
			}
			seen := false
			for _, x := range f.Failures { // what is under way at the end is aborted
				if seen = seen || x.Label == tt.want; x.Label != tt.want && x.Label != "aborted" ||
					len(x.Detail) > 1000 {
					t.Errorf("%d of them: %s (%.200s), want %s", x.N, x.Label, x.Detail, tt.want)
				}
			}
			if !seen {
				t.Errorf("nothing is said to be %s", tt.want)
			}
			if f.Attempts != f.Failed+f.Lost || f.Lost > 4 {
				t.Errorf("%d attempts at %d operations, %d lost", f.Attempts, f.Failed, f.Lost)
			}
			if answered := strings.Contains(tt.want, "0"); !answered && f.Failed > 4*(1+15) {
				t.Errorf("%d operations failed in 1.5 s of 4 workers: they did not rest", f.Failed)
			}
			if took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// An answer that never ends is aborted with the run, and is lost.
func TestAnswersWithoutEnd(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for name, address := range map[string]string{
		"a trickle": speaks(t, endless(ok+"Content-Length: 1000000\r\n\r\n", "x", 100*time.Millisecond)),
		"a flood": speaks(t, endless(ok+"Transfer-Encoding: chunked\r\n\r\n",
			"10000\r\n"+strings.Repeat("x", 1<<16)+"\r\n", 0)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, took, _ := readFor(t, address, 300*time.Millisecond)
			if f.OK != 0 || f.Lost == 0 {
				t.Errorf("%d ok, %d lost, %v", f.OK, f.Lost, f.Failures)
			}
			if took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// readFor reads for 1.5 s by four workers, each operation for at most timeout
// without progress (noticed up to a second late).
func readFor(t *testing.T, address string, timeout time.Duration) (f loadgen.Figures, took time.Duration,
	failed error) {
	t.Helper()
	w, problems := cosbench.Parse(fmt.Appendf(nil, `<workload name="w"><storage type="s3" config="endpoint=%s;accesskey=k;secretkey=s;timeout=%d"/><workflow>
<workstage name="main"><work name="main" workers="4" runtime="1500ms"><operation type="read" config="containers=c(1);objects=c(1);hashCheck=true"/></work></workstage>
</workflow></workload>`, address, timeout.Milliseconds()), cosbench.Options{})
	if problems.Fatal() {
		t.Fatal(problems)
	}
	clock := op.NewClock()
	opener := backend.Opener{Clock: clock, Getenv: func(string) string { return "" }}
	start := time.Now()
	r := loadtest.Run(t.Context(), loadgen.Config{Workload: w, Open: opener.Store, Clock: clock, Seed: 1,
		Grace: time.Second})
	took = time.Since(start)
	if len(r.Stages) != 1 || len(r.Stages[0].Works) != 1 {
		t.Fatalf("%+v", r)
	}
	figures, err := r.Stages[0].Works[0].Figures()
	if err != nil {
		t.Fatal(err)
	}
	return figures[0], took, r.Err
}
