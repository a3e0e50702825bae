package http

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/weirlog/weir/ingest"
)

// A page is the answer to a search, written as it is found: there is no second copy of it as a whole.
type page struct {
	organization string
	found        []ingest.Found
	next         *string
}

// foundHead is what an item of a page says of its entry. The entry itself follows it, and no encoder touches that.
type foundHead struct {
	ID           string    `json:"id"`
	Organization string    `json:"organization"`
	Project      string    `json:"project"`
	Environment  string    `json:"environment"`
	ReceivedAt   time.Time `json:"received_at"`
}

// writeBuffer gathers small entries; a large one goes past it.
const writeBuffer = 16 << 10

func (p *page) write(w io.Writer) error {
	out := bufio.NewWriterSize(w, writeBuffer)
	_, _ = out.WriteString(`{"items":[`)
	for i := range p.found {
		if i > 0 {
			_ = out.WriteByte(',')
		}
		if err := p.writeItem(out, &p.found[i]); err != nil {
			return err
		}
	}
	next, err := json.Marshal(p.next)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, `],"next_cursor":%s}`, next)
	return out.Flush() // tells of every failure before
}

func (p *page) writeItem(out *bufio.Writer, found *ingest.Found) error {
	head, err := json.Marshal(foundHead{
		ID: hex.EncodeToString(found.Batch[:]) + "-" + strconv.Itoa(found.Index), Organization: p.organization,
		Project: found.Project, Environment: found.Environment, ReceivedAt: found.ReceivedAt,
	})
	if err != nil {
		return err
	}
	_, _ = out.Write(head[:len(head)-1])
	_, _ = out.WriteString(`,"entry":`)
	_, _ = out.Write(found.Text)
	return out.WriteByte('}')
}
