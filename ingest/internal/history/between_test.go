package history_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/weirlog/weir/ingest/internal/clickhouse"
)

// between stands between a process and ClickHouse, and does something to
// the first statement that begins in a way.
type between struct {
	url string

	mu      sync.Mutex
	begins  string // "" for none
	fault   fault
	held    chan struct{} // closed when a statement is held
	release chan struct{}
}

type fault int

const (
	lost       fault = iota // the statement does not arrive
	unanswered              // it does, but not its answer
	held                    // it arrives once it is released
	down                    // no statement arrives, from then on
	slow                    // it takes too long
)

func (r *rig) between() (*between, *clickhouse.Store) {
	r.t.Helper()
	at := strings.LastIndexByte(r.url, '/')
	b := &between{url: r.url[:at]}
	server := httptest.NewServer(b)
	r.t.Cleanup(server.Close)
	return b, r.rowsAt(server.URL + r.url[at:])
}

// on has the next statement that begins so fail.
func (b *between) on(begins string, fault fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.begins, b.fault, b.held, b.release = begins, fault, make(chan struct{}), make(chan struct{})
}

// heal ends a fault of all statements.
func (b *between) heal() { b.on("none", lost) }

func (b *between) of(statement string) (fault fault, hit bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.begins == "none" || b.begins == "" && b.fault != down || !strings.HasPrefix(statement, b.begins) {
		return 0, false
	}
	if b.fault != down {
		b.begins = "none"
	}
	return b.fault, true
}

func (b *between) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fault, hit := b.of(r.URL.Query().Get("query"))
	if hit && (fault == lost || fault == down) {
		panic(http.ErrAbortHandler)
	}
	if hit && fault == held {
		close(b.held)
		<-b.release
	}
	if hit && fault == slow {
		w.Header().Set("X-ClickHouse-Exception-Code", "159")
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	response, err := http.Post(b.url+"/?"+r.URL.RawQuery, "", bytes.NewReader(body)) //nolint:noctx // whoever asked may have gone
	if err != nil || hit && fault == unanswered {
		panic(http.ErrAbortHandler)
	}
	defer response.Body.Close()
	w.Header().Set("X-ClickHouse-Exception-Code", response.Header.Get("X-ClickHouse-Exception-Code"))
	w.WriteHeader(response.StatusCode)
	_, _ = io.Copy(w, response.Body)
}
