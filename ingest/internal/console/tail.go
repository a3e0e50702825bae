package console

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/weirlog/weir/ingest"
	ingesthttp "github.com/weirlog/weir/ingest/internal/http"
	"github.com/weirlog/weir/shared/ui"
)

// A browser gets rows that a person can just about follow.
const (
	rowsAtOnce = 25
	rowsEvery  = 250 * time.Millisecond
)

// liveOf offers what a page shows as it comes. What is only of the past is
// left out.
func liveOf(r *http.Request) ui.Live {
	query := url.Values{}
	for _, name := range []string{"project", "level", "environment", "q"} {
		for _, value := range r.URL.Query()[name] {
			if value != "" {
				query.Add(name, value)
			}
		}
	}
	return ui.NewLive("/console/logs", query)
}

// tail streams the rows of entries as they come.
func (c *console) tail(w http.ResponseWriter, r *http.Request) error {
	return c.Tails.Stream(w, r, ingesthttp.Form{AtOnce: rowsAtOnce, Every: rowsEvery, Write: func(out io.Writer, found *ingest.Found) error {
		row, err := c.pages.Nodes("logs", "entry", c.show(*found))
		if err != nil {
			return err
		}
		_, err = out.Write(bytes.TrimSpace(row))
		return err
	}})
}
