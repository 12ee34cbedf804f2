package httpconn

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

// Kind is why there was no complete response. The empty Kind: there was one.
type Kind string

// The kinds, by the point of the exchange that failed: refusals and stalls differ.
const (
	Unresolved   Kind = "unresolved"     // the name has no address
	Refused      Kind = "refused"        // no listener
	Unreachable  Kind = "unreachable"    // no way there
	NoConnection Kind = "connectTimeout" // no response to the connection attempt
	TLSUntrusted Kind = "tlsUntrusted"   // the certificate is of an unknown authority
	TLSName      Kind = "tlsName"        // the certificate is for another name
	TLSExpired   Kind = "tlsExpired"     // the certificate is not valid at this time
	TLSFailed    Kind = "tls"            // the handshake failed otherwise
	WrongScheme  Kind = "wrongScheme"    // TLS on a port that has plain HTTP, or the reverse
	ProxyRefused Kind = "proxy"          // the proxy made no connection to the server
	SendStalled  Kind = "sendStalled"    // the server stopped taking the request
	Stalled      Kind = "stalled"        // no response began in time
	BodyStalled  Kind = "bodyStalled"    // the response stopped
	Closed       Kind = "closed"         // the connection was closed before a response began
	Reset        Kind = "reset"          // the connection was reset
	Cut          Kind = "cut"            // the response ended early
	Garbage      Kind = "garbage"        // what came is no HTTP
	Aborted      Kind = "aborted"        // we gave up: the run ended
	LocalFailed  Kind = "local"          // the fault is on our side: a file, a limit of this machine
)

// Failure is an exchange without a complete response.
type Failure struct {
	Kind Kind
	Err  error
}

func (f *Failure) Error() string { return fmt.Sprintf("%s: %v", f.Kind, f.Err) }

func (f *Failure) Unwrap() error { return f.Err }

func fail(k Kind, err error) *Failure { return &Failure{k, err} }

// dialFailure classifies the failure to connect.
func dialFailure(err error) *Failure {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		return fail(Unresolved, err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fail(Refused, err)
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return fail(Unreachable, err)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.EADDRNOTAVAIL):
		return fail(LocalFailed, err)
	case isTimeout(err):
		return fail(NoConnection, err)
	case errors.Is(err, syscall.ECONNRESET):
		return fail(Reset, err)
	}
	return fail(Unreachable, err)
}

// What the other side of a connection shows of its scheme.
var (
	errHTTPOnTLS = errors.New("HTTP answer on a TLS port: write http:// in the address")
	errTLSOnHTTP = errors.New("TLS answer on an HTTP port: write https:// in the address")
)

// wantsTLS are parts of the texts by which servers refuse plain HTTP on a TLS port: Go, nginx, Apache.
var wantsTLS = []string{"HTTP request to an HTTPS server", "plain HTTP request was sent to HTTPS port",
	"speaking plain HTTP to an SSL-enabled server port"}

// WantsTLS is the failure of a request over plain HTTP that the server answered by asking for TLS; nil: it did not.
// body is that of a response with status 400.
func WantsTLS(body []byte) *Failure {
	for _, text := range wantsTLS {
		if bytes.Contains(body, []byte(text)) {
			return fail(WrongScheme, errTLSOnHTTP)
		}
	}
	return nil
}

// isTLS reports whether bytes begin a record of TLS: an alert or a handshake, of any version.
func isTLS(b []byte) bool {
	return len(b) > 2 && (b[0] == 0x15 || b[0] == 0x16) && b[1] == 3 && b[2] <= 4
}

// tlsFailure classifies the failure of a handshake.
func tlsFailure(err error) *Failure {
	var (
		record    tls.RecordHeaderError
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		verify    *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &record) && string(record.RecordHeader[:]) == "HTTP/":
		return fail(WrongScheme, errHTTPOnTLS)
	case errors.As(err, &authority):
		return fail(TLSUntrusted, err)
	case errors.As(err, &name):
		return fail(TLSName, err)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fail(TLSExpired, err)
	case errors.As(err, &invalid), errors.As(err, &verify):
		return fail(TLSUntrusted, err)
	case isTimeout(err):
		return fail(NoConnection, err)
	}
	return fail(TLSFailed, err)
}

// readFailure classifies the end of reading; begun reports whether the response had begun.
func readFailure(err error, begun bool) *Failure {
	switch {
	case isTimeout(err) && begun:
		return fail(BodyStalled, err)
	case isTimeout(err):
		return fail(Stalled, err)
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return fail(Reset, err)
	case begun:
		return fail(Cut, io.ErrUnexpectedEOF)
	}
	return fail(Closed, err)
}

func writeFailure(err error) *Failure {
	if isTimeout(err) {
		return fail(SendStalled, err)
	}
	return fail(Reset, err)
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &n) && n.Timeout()
}
