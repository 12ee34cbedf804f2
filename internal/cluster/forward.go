package cluster

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
)

// Forward connects to a port of a pod in the namespace, through the API server and the kubelet. Each connection has
// a port-forward of its own, so that a refused connection ends no other.
func (c *Cluster) Forward(pod string, port int) (net.Conn, error) {
	transport, upgrader, err := spdy.RoundTripperFor(c.Config)
	if err != nil {
		return nil, err
	}
	target := c.Set.CoreV1().RESTClient().Post().Resource("pods").Namespace(c.Namespace).Name(pod).
		SubResource("portforward").URL()
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, target)
	conn, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return nil, fmt.Errorf("forward a port to pod %s: %w", pod, err)
	}
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(port))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	failure, err := conn.CreateStream(headers)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	_ = failure.Close() // nothing is written to it
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := conn.CreateStream(headers)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	t := &tunnel{ReadWriter: data, close: conn.Close, refused: make(chan string, 1)}
	go func() {
		text, _ := io.ReadAll(failure)
		t.refused <- strings.TrimSpace(string(text))
		if len(text) > 0 {
			_ = conn.Close()
		}
	}()
	return t, nil
}

// tunnel is a net.Conn over a forwarded stream. It has no deadlines.
type tunnel struct {
	io.ReadWriter
	close   func() error
	refused chan string
}

// Read returns the kubelet's reason if the port refused the connection.
func (t *tunnel) Read(b []byte) (int, error) {
	n, err := t.ReadWriter.Read(b)
	if err != nil && n == 0 {
		select {
		case why := <-t.refused:
			if why != "" {
				return 0, errors.New(why)
			}
		default:
		}
	}
	return n, err
}

func (t *tunnel) Close() error { return t.close() }

type tunnelAddr struct{}

func (tunnelAddr) Network() string { return "port-forward" }
func (tunnelAddr) String() string  { return "port-forward" }

func (t *tunnel) LocalAddr() net.Addr              { return tunnelAddr{} }
func (t *tunnel) RemoteAddr() net.Addr             { return tunnelAddr{} }
func (t *tunnel) SetDeadline(time.Time) error      { return nil }
func (t *tunnel) SetReadDeadline(time.Time) error  { return nil }
func (t *tunnel) SetWriteDeadline(time.Time) error { return nil }
