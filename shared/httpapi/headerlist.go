package httpapi

import (
	"errors"

	"golang.org/x/net/http2/hpack"

	"github.com/weirlog/weir/shared/httpapi/frames"
)

// maxHeaderList is how large a header list of HTTP/2 may be, as RFC 9113
// counts it: those between maxHeaderBytes and this are refused by a
// handler, larger ones end their connection.
const maxHeaderList = 4 * maxHeaderBytes

// errHeaderList means that a client sends header lists that no client needs.
var errHeaderList = errors.New("a header list is too large")

// A headerList measures the header lists of a connection as they pass:
// net/http answers a too large one by itself, with 431 and in HTML, and
// a few bytes can stand for many. It keeps the table that the client's
// bytes refer to, 4 KB, and at most one field.
type headerList struct {
	decoder *hpack.Decoder
	size    uint32 // of the current list, so far

	left     int // bytes of the current frame's payload that have not passed
	priority int // of which these come before the list
	padding  int // and these after it
	padded   bool
	last     bool // frame of its list
}

const (
	flagEndHeaders = 0x4
	flagPadded     = 0x8
	flagPriority   = 0x20

	priorityBytes = 5
	tableBytes    = 4096 // which a client may use before it knows better
)

func newHeaderList() *headerList {
	h := &headerList{}
	h.decoder = hpack.NewDecoder(tableBytes, func(field hpack.HeaderField) { h.size += field.Size() })
	h.decoder.SetMaxStringLength(maxHeaderList)
	return h
}

// begin takes the header of a frame that has a part of a list.
func (h *headerList) begin(header frames.Header) {
	h.left, h.priority, h.padding = header.Length, 0, 0
	h.last = header.Flags&flagEndHeaders != 0
	h.padded = false
	if header.Type == frames.Headers {
		h.size = 0
		h.padded = header.Flags&flagPadded != 0
		if header.Flags&flagPriority != 0 {
			h.priority = priorityBytes
		}
	}
}

// take reads what p has of the frame's payload. What it can't read,
// net/http can't either, and ends the connection.
func (h *headerList) take(p []byte) error {
	p = p[:min(h.left, len(p))]
	h.left -= len(p)
	if h.padded && len(p) > 0 {
		h.padding, h.padded, p = int(p[0]), false, p[1:]
	}
	skipped := min(h.priority, len(p))
	h.priority, p = h.priority-skipped, p[skipped:]
	_, err := h.decoder.Write(p[:max(0, len(p)-max(0, h.padding-h.left))])
	if h.size > maxHeaderList || errors.Is(err, hpack.ErrStringLength) {
		return errHeaderList
	}
	if h.last && h.left == 0 {
		_ = h.decoder.Close()
	}
	return nil
}
