package http

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/httpapi"
)

// A page is the answer to a search, written without a second copy.
type page struct {
	organization string
	found        []ingest.Found
	next         *string
	incomplete   bool
}

// pageBody is what a page is written as.
type pageBody struct {
	httpapi.List[foundBody]
	Incomplete bool `json:"incomplete,omitempty" const:"true" description:"The search had its share of time or of bytes before the page was full. What it holds is certain; next_cursor goes on"`
}

type foundBody struct {
	foundHead
	Entry map[string]any `json:"entry" description:"The entry as it was accepted: its text, without insignificant white space, is byte for byte what was sent"`
}

// foundHead are the fields of an item before its entry, which no encoder touches.
type foundHead struct {
	ID           string    `json:"id"`
	Organization string    `json:"organization"`
	Project      string    `json:"project"`
	Environment  string    `json:"environment" description:"The entry's own, or that of the key it came with"`
	ReceivedAt   time.Time `json:"received_at"`
}

// A flusher writes at the latest when flushed, and returns every
// earlier failure then.
type flusher interface {
	io.Writer
	Flush() error
}

func (p *page) write(out flusher) error {
	_, _ = io.WriteString(out, `{"items":[`)
	for i := range p.found {
		if i > 0 {
			_, _ = io.WriteString(out, `,`)
		}
		if err := p.writeItem(out, &p.found[i]); err != nil {
			return err
		}
	}
	next, err := json.Marshal(p.next)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, `],"next_cursor":%s`, next)
	if p.incomplete {
		_, _ = io.WriteString(out, `,"incomplete":true`)
	}
	_, _ = io.WriteString(out, `}`)
	return out.Flush()
}

func (p *page) writeItem(out io.Writer, found *ingest.Found) error {
	head, err := json.Marshal(foundHead{
		ID: hex.EncodeToString(found.Batch[:]) + "-" + strconv.Itoa(found.Index), Organization: p.organization,
		Project: found.Project, Environment: found.Environment, ReceivedAt: found.ReceivedAt,
	})
	if err != nil {
		return err
	}
	_, _ = out.Write(head[:len(head)-1])
	_, _ = io.WriteString(out, `,"entry":`)
	_, _ = out.Write(found.Text)
	_, err = io.WriteString(out, `}`)
	return err
}
