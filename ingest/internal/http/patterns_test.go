package http_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/ingest"
	ingesthttp "github.com/weirlog/weir/ingest/internal/http"
	"github.com/weirlog/weir/ingest/internal/searches"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/routetest"
	"github.com/weirlog/weir/shared/identity"
)

// minutely has an entry for each minute, the first of which is the newest.
type minutely struct {
	searches.Finder
	messages []string
}

func (m minutely) Count(_ context.Context, _ string, count ingest.Count, top int) (ingest.Counted, error) {
	counter := count.NewCounter()
	for i, message := range m.messages {
		text, err := json.Marshal(map[string]string{"message": message})
		if err != nil {
			return ingest.Counted{}, err
		}
		at := ingest.InstantOf(now.Add(time.Duration(-i-1) * time.Minute))
		counter.Add([]ingest.Stored{{Place: ingest.Place{Time: at, Index: i}, Level: ingest.SeverityWarn, Text: text}}, "prj_1")
	}
	result := counter.Result(top)
	if count.Search.Levels.Has(ingest.SeverityDebug) && count.Search.Levels != 0 {
		result.From = count.Search.From
	}
	return result, nil
}

func patterns(t *testing.T, messages []string, query, accept string) *httptest.ResponseRecorder {
	t.Helper()
	logs := &ingesthttp.Logs{Service: &searches.Service{Searches: minutely{messages: messages}, Directory: identity.NewDirectory()}, Clock: func() time.Time { return now }}
	router := httpapi.NewRouter(httpapi.Options{Logger: slog.New(slog.DiscardHandler), Clock: time.Now})
	router.Get("/v1/logs/patterns", httpapi.Handle(logs.Patterns))
	who := identity.NewContext(t.Context(), identity.Principal{Organization: "org_1"})
	request := httptest.NewRequestWithContext(who, http.MethodGet, "/v1/logs/patterns?"+query, nil)
	request.Header.Set("Accept", accept)
	answer := httptest.NewRecorder()
	routetest.Handler(router).ServeHTTP(answer, request)
	return answer
}

func TestPatterns(t *testing.T) {
	list := []string{"took 5 ms", "=1+1 of ada", "took 9 ms", "", "took 7 ms"}
	want := `{"patterns":[{"pattern":"took <num> ms","entries":3,"share":0.6,"levels":{"warn":3},"first_seen":"2026-11-21T11:55:30Z","last_seen":"2026-11-21T11:59:30Z",` +
		`"example":{"id":"00000000000000000000000000000000-4","message":"took 7 ms"},"query":"\"took\" \"ms\""},{"pattern":"=<num>+<num> of ada",`
	answer := patterns(t, list, "", "")
	if body := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(answer.Body.String()); answer.Code != http.StatusOK || !strings.HasPrefix(body, want) || !strings.Contains(body, `"entries":5,"without":1`) {
		t.Errorf("%d %s\nwant %s", answer.Code, body, want)
	}
	want = "pattern,entries,share,debug,info,warn,error,fatal,first_seen,last_seen,example,query\n" +
		"took <num> ms,3,0.6,0,0,3,0,0,2026-11-21T11:55:30Z,2026-11-21T11:59:30Z,took 7 ms,\"\"\"took\"\" \"\"ms\"\"\"\n" +
		"'=<num>+<num> of ada,1,0.2,0,0,1,0,0,2026-11-21T11:58:30Z,2026-11-21T11:58:30Z,'=1+1 of ada,\"\"\"of ada\"\"\"\n"
	if answer := patterns(t, list, "from=-1h", "text/csv"); answer.Body.String() != want || answer.Header().Get("Weir-Incomplete") != "false" {
		t.Errorf("%v\n%s\nwant\n%s", answer.Header(), answer.Body, want)
	}
	if body := patterns(t, list, "top=1", "").Body.String(); strings.Contains(body, "=1+1") {
		t.Errorf("more than one: %s", body)
	}
}

// What is new is what the time before does not have, and the answer says what that was.
func TestNewPatterns(t *testing.T) {
	list := []string{"disk 7 is full", "took 5 ms", "disk 8 is full", "took 9 ms"}
	for query, want := range map[string]string{
		"since=-150s":             `{"patterns":[],"entries":2,"without":0,"compared":{"entries":2},"scanned_bytes":0}`,
		"since=-90s":              `{"patterns":[],"entries":1,"without":0,"compared":{"entries":3},"scanned_bytes":0}`,
		"since=-150s&level=debug": `"compared":{"entries":0,"incomplete":true,"exact_after":"2026-11-20T11:58:00Z"},"incomplete":true,"exact_after":"2026-11-21T11:58:00Z"`,
	} {
		if body := patterns(t, list, query, "").Body.String(); !strings.Contains(body, want) {
			t.Errorf("%s: %s\nwant %s", query, body, want)
		}
	}
	var found struct{ Patterns []struct{ Pattern string } }
	body := patterns(t, list, "since=-210s&from=-4m", "").Body.Bytes()
	if err := json.Unmarshal(body, &found); err != nil || fmt.Sprint(found.Patterns) != "[{disk <num> is full}]" {
		t.Errorf("%v: %s", err, body)
	}
}

func TestPatternsRefuse(t *testing.T) {
	for query, pointer := range map[string]string{
		"since=x": "?since", "since=-1h&from=-1h": "?since", "since=-1h&to=-2h": "?since", "top=101": "?top", "q=%22": "?q", "from=x": "?from", "limit=5": "?limit",
	} {
		if answer := patterns(t, nil, query, ""); answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), `"`+pointer+`"`) {
			t.Errorf("%s: %d %s", query, answer.Code, answer.Body)
		}
	}
}
