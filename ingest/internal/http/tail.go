package http

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/searches"
	"github.com/weirlog/weir/ingest/internal/tails"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/lifecycle"
)

// Tails serves GET /v1/logs/tail: the entries of the caller's organization
// as they come.
type Tails struct {
	Hub     *tails.Hub
	Service *searches.Service
	Guard   *identity.Guard
	Clock   func() time.Time
	Longest time.Duration // of one tail
}

// Show answers with events until the client, or one of the limits, ends it.
func (t *Tails) Show(w http.ResponseWriter, r *http.Request) error {
	return t.Stream(w, r, Form{Write: func(out io.Writer, found *ingest.Found) error {
		return writeItem(out, identity.FromContext(r.Context()).Organization, found)
	}})
}

// A Form is how entries are shown.
type Form struct {
	Write  func(out io.Writer, found *ingest.Found) error // in one line
	AtOnce int                                            // most entries at once; 0: no limit
	Every  time.Duration                                  // least time between them
}

// Stream is Show in another form.
func (t *Tails) Stream(w http.ResponseWriter, r *http.Request, form Form) error {
	if err := openapi.OnlyKnown(r, filter{}); err != nil { // only a search of the past has more
		return err
	}
	search, err := parseFilter(r.URL.Query())
	if err != nil {
		return err
	}
	asked, who := search.Project, identity.FromContext(r.Context())
	if search.Project, err = t.Service.Readable(who, asked); err != nil {
		return NotFound(err, search)
	}
	viewer, err := t.Hub.Watch(r.Context(), who.Organization, search, form.AtOnce)
	if err != nil {
		return err
	}
	defer viewer.Close()
	w.Header().Set("Content-Type", httpapi.TypeEvents)
	w.Header().Set("X-Accel-Buffering", "no") // nginx would hold events back
	if r.Method == http.MethodHead {
		return nil
	}
	s := &tail{Tails: t, r: r, viewer: viewer, asked: asked, form: form, out: httpapi.NewEventWriter(w, t.Longest+endTime)}
	return s.run()
}

// The pace of a tail.
const (
	checkInterval = time.Second      // whether the caller may still read, and what was skipped
	heartbeat     = 15 * time.Second // proxies end what is silent
	endTime       = time.Minute      // for the last events
)

// Why a tail ends.
const (
	endTimeUp     = "time_is_up"
	endStopping   = "server_stops"
	endCredential = "credential_ended"
	endProject    = "project_deleted"
	endEvicted    = "overloaded"
)

// A tail is one answer.
type tail struct {
	*Tails
	r       *http.Request
	viewer  *tails.Viewer
	asked   string // project
	form    Form
	out     *httpapi.PacedWriter
	checked time.Time
}

func (t *tail) run() error {
	checks, beats, end := time.NewTicker(checkInterval), time.NewTicker(heartbeat), time.NewTimer(t.Longest)
	defer checks.Stop()
	defer beats.Stop()
	defer end.Stop()
	text := "retry: 2000\n\n" // how long a browser waits before it comes back
	for reason := ""; reason == ""; text = "" {
		_, _ = io.WriteString(t.out, text)
		if err := t.out.Flush(); err != nil {
			return err
		}
		if t.form.Every > 0 {
			lifecycle.Pause(t.r.Context(), t.form.Every)
		}
		select {
		case <-t.viewer.Ready():
		case <-checks.C:
		case <-beats.C:
			_, _ = io.WriteString(t.out, ": heartbeat\n\n")
		case <-end.C:
			reason = endTimeUp
		case <-t.viewer.Evicted():
			reason = endEvicted
		case <-httpapi.Stopping(t.r.Context()):
			reason = endStopping
		case <-t.r.Context().Done():
			return nil
		}
		if reason == "" {
			reason = t.check()
		}
		if err := t.write(reason); err != nil {
			return err
		}
	}
	return t.out.Flush()
}

// check returns why the tail has to end; empty: it has not. Once a second it
// looks, and says what was skipped.
func (t *tail) check() (reason string) {
	now := t.Clock()
	if now.Sub(t.checked) < checkInterval {
		return ""
	}
	t.checked = now
	for _, s := range t.viewer.Skipped() {
		_, _ = fmt.Fprintf(t.out, "event: skipped\ndata: {\"entries\":%d,\"reason\":%q}\n\n", s.Entries, s.Reason)
	}
	if !t.Guard.Holds(t.r) {
		return endCredential
	}
	if _, err := t.Service.Readable(identity.FromContext(t.r.Context()), t.asked); err != nil {
		return endProject
	}
	return ""
}

// write writes what has come, and why the tail ends. Nothing is shown to one
// who may no longer read.
func (t *tail) write(reason string) error {
	if reason != endCredential && reason != endProject {
		if err := t.viewer.Take(t.entry); err != nil {
			return err
		}
	}
	if reason != "" {
		_, _ = fmt.Fprintf(t.out, "event: end\ndata: {\"reason\":%q}\n\n", reason)
	}
	return nil
}

func (t *tail) entry(found *ingest.Found) error {
	_, _ = io.WriteString(t.out, "event: entry\ndata: ")
	if err := t.form.Write(t.out, found); err != nil {
		return err
	}
	_, err := io.WriteString(t.out, "\n\n")
	return err
}
