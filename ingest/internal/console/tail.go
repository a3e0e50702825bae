package console

import (
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

// path is that of the page.
const path = "/console/logs"

// liveOf offers what a page shows as it comes. What is only of the past is
// left out.
func liveOf(r *http.Request) ui.Live {
	query := url.Values{}
	for _, name := range []string{"project", "level", "environment", "q", "field"} {
		for _, value := range r.URL.Query()[name] {
			if value != "" {
				query.Add(name, value)
			}
		}
	}
	return ui.NewLive(path, query)
}

// tail streams the rows of entries as they come.
func (c *console) tail(w http.ResponseWriter, r *http.Request) error {
	fields, err := pickedFields(r)
	if err != nil {
		return err
	}
	asked := ui.Without(r, "field")
	v := &view{console: c, r: ui.Without(r), fields: fields}
	v.r.URL.Path = path // of the rows' links
	if v.search.Query, err = ingest.ParseQuery(r.URL.Query().Get("q")); err != nil {
		v.search.Query = ingest.Query{} // the answer says why
	}
	return c.Tails.Stream(w, asked, ingesthttp.Form{AtOnce: rowsAtOnce, Every: rowsEvery, Write: func(out io.Writer, found *ingest.Found) error {
		row, err := c.pages.Nodes("logs", "entry", v.entry(found))
		if err != nil {
			return err
		}
		_, err = out.Write(row)
		return err
	}})
}
