package client

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cnsbench/cnsbench/internal/object/httpconn"
)

// excerptSize bounds what a message has of a body.
const excerptSize = 120 // bytes, before they are escaped

// Excerpt returns the beginning of a body as a quoted text: white space is collapsed, and what is not printable is
// escaped. It is empty without a body.
func Excerpt(body []byte) string {
	body = body[:min(len(body), 8*excerptSize)] // enough to find that much text in it
	text := bytes.Join(bytes.Fields(body), []byte(" "))
	if len(text) == 0 {
		return ""
	}
	if len(text) <= excerptSize {
		return strconv.QuoteToASCII(string(text))
	}
	text = text[:excerptSize]
	for i := 1; i < utf8.UTFMax && !utf8.Valid(text); i++ { // it may have been cut within a character
		text = text[:len(text)-1]
	}
	return strconv.QuoteToASCII(string(text)) + "…"
}

// Explain completes the Detail of a refused request by what the response shows beyond the error of the protocol: where
// a redirect leads, and the beginning of a body that the store itself did not write, such as that of a proxy or a load
// balancer before it.
func (h *HTTP) Explain(res *Result) {
	switch {
	case h.plain && res.Status == http.StatusBadRequest:
		if f := httpconn.WantsTLS(h.Answer); f != nil {
			res.Status, res.Code, res.Failure, res.Detail = 0, "", f.Kind, f.Err.Error()
		}
	case res.Status >= 300 && res.Status < 400 && res.Detail == "":
		if to := h.X.Header("location"); to != "" {
			res.Detail = fmt.Sprintf("redirect to %s, which is not followed: write that address",
				Excerpt([]byte(to)))
		}
	}
	if res.Status < 400 || res.Code != "" || res.Detail != "" {
		return
	}
	text := Excerpt(h.Answer)
	if text == "" {
		return
	}
	who := "the response"
	if server := h.X.Header("server"); server != "" && res.Status >= 500 {
		who += " of " + strings.Trim(Excerpt([]byte(server)), `"`)
	}
	res.Detail = fmt.Sprintf("%s begins with %s", who, text)
}

// largeSkew is a difference between two clocks that is worth a message. S3 accepts 15 minutes.
const largeSkew = 5 * time.Minute

// Skew describes the difference between the clock of the server, by the Date of its response, and ours; empty if it is
// small or unknown.
func (h *HTTP) Skew(ours time.Time) string {
	theirs, err := http.ParseTime(h.X.Header("date"))
	if err != nil {
		return ""
	}
	d, side := ours.Sub(theirs).Round(time.Second), "ahead of"
	if d < 0 {
		d, side = -d, "behind"
	}
	if d < largeSkew {
		return ""
	}
	return fmt.Sprintf("the clock of this machine is %v %s that of the server (here %s, there %s): synchronise them",
		d, side, ours.UTC().Format(time.RFC3339), theirs.UTC().Format(time.RFC3339))
}
