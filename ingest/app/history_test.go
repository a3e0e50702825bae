package app_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/ingest/app"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/clickhousetest"
)

// A history goes to ClickHouse and comes back by a command, beside a process that
// serves it. A process without the setting says that it can't see all.
func TestHistory(t *testing.T) {
	r := newRig(t)
	r.config.History.URL = httpapi.Secret(clickhousetest.URL(t))
	p := r.start(nil)
	r.account("org_moved", nil)
	key := r.key("org_moved", "prj_moved", nil)
	p.admits(key)
	var sent []string
	send := func() {
		body := entry(fmt.Sprintf("moved %d", len(sent)), `,"metadata":{"x":"\u00e9"}`)
		sent = append(sent, body)
		if got := p.post(key, bodyOf(body)); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.text)
		}
	}
	found := func(p *replica) error {
		page := p.get(key, "/v1/logs?order=asc&q=moved")
		got := entriesOf(t, page.text)
		slices.Sort(got)
		if fmt.Sprint(got) != fmt.Sprint(sent) {
			return fmt.Errorf("found %q, want %q: %s", got, sent, page.text)
		}
		return nil
	}
	alone := func() *replica { return r.start(func(c *app.Config) { c.History.URL = "" }) }
	for _, to := range []string{"clickhouse", "postgres", "clickhouse"} {
		send()
		testenv.Eventually(t, func() error { return found(p) })
		progress := 0
		testenv.Must(t, app.HistoryMove{
			DatabaseURL: r.config.DatabaseURL.Reveal(), ClickHouse: r.config.History, To: to, Logger: testenv.Logger(t),
			Progress: func(int, int64) { progress++ }, Clock: time.Now,
		}.Run(t.Context()))
		testenv.Must(t, found(p))
		other := alone()
		if page := other.get(key, "/v1/logs"); to == "clickhouse" && page.code() != httpapi.CodeUnavailable {
			t.Errorf("without ClickHouse: %d %s", page.status, page.text)
		}
		if to == "postgres" {
			testenv.Eventually(t, func() error { return found(other) })
		}
		other.stop()
	}
	pool, err := pg.Open(t.Context(), r.config.DatabaseURL.Reveal(), "ingest")
	testenv.Must(t, err)
	defer pool.Close()
	condition, err := app.ExamineHistory(t.Context(), r.config.History, pool, time.Now)
	if err != nil || condition.Rows != 3 || condition.Entries != 3 || condition.Last != condition.Known {
		t.Errorf("examined %+v, %v", condition, err)
	}
	discarded, err := app.DiscardHistory(t.Context(), r.config.DatabaseURL.Reveal(), r.config.History, time.Now)
	if err != nil || discarded != 0 {
		t.Errorf("discarded %d moves, %v", discarded, err)
	}
	testenv.Must(t, found(p))
}

// An address is checked at the start, and shown without its password.
func TestHistorySettings(t *testing.T) {
	for address, want := range map[string]string{
		"clickhouse://weir:secret@host/weir": "no URL such as", "https://weir:secret@host/a;b": "no name of a database", "http://weir:secret@host": "no name",
	} {
		err := app.HistoryConfig{URL: httpapi.Secret(address)}.Validate()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
}
