package console_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
)

// What was rejected is shown by key and code, with its samples, filters and pages.
func TestRejected(t *testing.T) {
	d := newDesk(t)
	at := time.Date(2026, 11, 21, 11, 58, 0, 0, time.UTC)
	rejected := []ingest.Rejected{{Organization: "org_1", Project: "prj_1", Key: "key_1", Code: "invalid_level", Entries: 1234, LastAt: at, Samples: []ingest.RejectedSample{
		{At: at, Pointer: "/logs/0/level", Detail: hostile + " is not a level.", Fix: "Send one of five.", Text: `{"level":"` + hostile + `"}`, Cut: true},
	}}}
	for i := range 60 {
		rejected = append(rejected, ingest.Rejected{Organization: "org_1", Project: "prj_1", Key: fmt.Sprintf("key_2%02d", i), Code: "invalid_json", Entries: 1, LastAt: at})
	}
	testenv.Must(t, pg.InTxAsSystem(t.Context(), d.service.Pool, func(tx pgx.Tx) error { return postgres.SaveRejected(t.Context(), tx, rejected) }))
	page := d.page("1", "/console/logs/rejected?project=prj_1", 200, "<strong>1,234</strong> × <code>invalid_level</code>", "<bdi>Cart</bdi>, prod", "2 min ago",
		"<strong>Send one of five.</strong>", "/logs/0/level", "This is a part of it", "No sample was kept", `href="/console/settings/api-keys/key_1"`, "Next page")
	if raw := ask(t, d.handler, session("1"), "/console/logs/rejected").Body.String(); strings.Contains(raw, "<script>alert") || strings.Count(page, "<details") < 50 {
		t.Errorf("not escaped, or not the first project's:\n%s", raw)
	}
	if page := d.page("1", "/console/logs/rejected?project=prj_1&key=key_1", 200, "invalid_level", "All keys and codes"); strings.Contains(page, "invalid_json") {
		t.Errorf("another key is shown:\n%s", page)
	}
	d.page("1", "/console/logs/rejected?project=prj_1&code=x", 200, "Nothing was rejected")
	d.page("1", "/console/logs/rejected?project=prj_2", 404)
	d.page("1", "/console/logs/rejected?key=%00", 400)
	d.page("1", "/console/logs", 200, `href="/console/logs/rejected"`)
	d.page("1", "/console/logs?project=prj_1", 200, `href="/console/logs/rejected?project=prj_1"`)
}
