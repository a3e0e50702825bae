package http_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/ingest"
	ingesthttp "github.com/weirlog/weir/ingest/internal/http"
	"github.com/weirlog/weir/ingest/internal/searches"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/routetest"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
)

// counted counts the same entries for each request.
type counted struct {
	searches.Finder
	asked ingest.Count
}

func (c *counted) Count(_ context.Context, _ string, count ingest.Count, top int) (ingest.Counted, error) {
	c.asked = count
	counter := count.NewCounter()
	for i, text := range []string{`{"metadata":{"service":"api","ms":10}}`, `{"metadata":{"service":"api","ms":30}}`, `{"metadata":{"service":"web, old"}}`} {
		at := ingest.InstantOf(now.Add(time.Duration(i-3) * time.Minute))
		counter.Add([]ingest.Stored{{Place: ingest.Place{Time: at}, Level: ingest.SeverityInfo + ingest.Severity(i), Text: []byte(text)}}, "prj_1")
	}
	result := counter.Result(top)
	if !count.Search.Levels.Has(ingest.SeverityInfo) {
		result.From = count.Search.From
	}
	return result, nil
}

func stats(t *testing.T, finder searches.Finder, query, accept string) (status int, body string) {
	t.Helper()
	logs := &ingesthttp.Logs{Service: &searches.Service{Searches: finder, Directory: identity.NewDirectory()}, Clock: func() time.Time { return now }}
	router := httpapi.NewRouter(httpapi.Options{Logger: slog.New(slog.DiscardHandler), Clock: time.Now})
	router.Get("/v1/logs/stats", httpapi.Handle(logs.Stats))
	who := identity.NewContext(t.Context(), identity.Principal{Organization: "org_1"})
	request := httptest.NewRequestWithContext(who, http.MethodGet, "/v1/logs/stats?"+query, nil)
	request.Header.Set("Accept", accept)
	answer := httptest.NewRecorder()
	routetest.Handler(router).ServeHTTP(answer, request)
	return answer.Code, answer.Body.String()
}

func TestStats(t *testing.T) {
	finder := new(counted)
	status, body := stats(t, finder, "from=-3m&every=1m&by=service&by=level&of=ms", "")
	want := `{"entries":3,"levels":{"error":1,"info":1,"warn":1},"numbers":{"count":2,"sum":40,"min":10,"max":30,"p50":10,"p90":10,"p95":10,"p99":10},"every_seconds":60,` +
		`"buckets":[{"at":"2026-11-21T11:57:00Z","entries":1,"levels":{"info":1}},{"at":"2026-11-21T11:58:00Z","entries":1,"levels":{"warn":1}},` +
		`{"at":"2026-11-21T11:59:00Z","entries":1,"levels":{"error":1}},{"at":"2026-11-21T12:00:00Z","entries":0,"levels":{}}],` +
		`"fields":[{"field":"service","values":[{"value":"api","entries":2,"buckets":[1,1,0,0],"numbers":`
	body = strings.NewReplacer("9.9", "10", "10.1", "10").Replace(body)
	if status != http.StatusOK || !json.Valid([]byte(body)) || !strings.HasPrefix(shorten(body), shorten(want)) || !strings.Contains(body, `{"value":"web, old","entries":1,"buckets":[0,0,1,0]}`) {
		t.Errorf("%d %s\nwant %s", status, body, want)
	}
	if _, body := stats(t, finder, "from=-3m&level=error", ""); !strings.Contains(body, `"incomplete":true,"exact_after":"2026-11-21T11:57:30Z"`) {
		t.Errorf("a part of a count is shown as %s", body)
	}
}

// shorten leaves out the quantiles, which are estimates.
func shorten(body string) string {
	before, rest, _ := strings.Cut(body, `"p50"`)
	_, after, _ := strings.Cut(rest, `}`)
	return before + after
}

func TestStatsAsCSV(t *testing.T) {
	const head = "at,field,value,entries,count,sum,min,max,p50,p90,p95,p99\n"
	for query, want := range map[string]string{
		"":                                     ",level,error,1,,,,,,,,\n,level,info,1,,,,,,,,\n,level,warn,1,,,,,,,,\n",
		"by=service":                           ",service,api,2,,,,,,,,\n,service,\"web, old\",1,,,,,,,,\n",
		"by=absent":                            "",
		"from=-3m&to=-1m&every=1m":             "2026-11-21T11:57:00Z,level,info,1,,,,,,,,\n2026-11-21T11:58:00Z,level,warn,1,,,,,,,,\n",
		"from=-3m&to=-1m&every=1m&by=project":  "2026-11-21T11:57:00Z,project,prj_1,1,,,,,,,,\n2026-11-21T11:58:00Z,project,prj_1,1,,,,,,,,\n2026-11-21T11:59:00Z,project,prj_1,0,,,,,,,,\n",
		"from=-3m&to=-1m&every=1m&by=nothing1": "",
	} {
		if status, body := stats(t, new(counted), query, "text/csv"); status != http.StatusOK || body != head+want {
			t.Errorf("%s: %d\n%swant\n%s", query, status, body, head+want)
		}
	}
}

func TestAutoKeepsBucketsFew(t *testing.T) {
	for from, every := range map[string]time.Duration{
		"-1s": time.Second, "-1m": time.Second, "-61s": 2 * time.Second, "-15m": 15 * time.Second, "-1h": time.Minute, "-24h": 30 * time.Minute, "-7d": 3 * time.Hour,
		"-60d": 24 * time.Hour, "-365d": 7 * 24 * time.Hour,
	} {
		finder := new(counted)
		if status, body := stats(t, finder, "every=auto&from="+from, ""); status != http.StatusOK || finder.asked.Every != every {
			t.Errorf("%s: %d, every %s, want %s: %.200s", from, status, finder.asked.Every, every, body)
		}
		if many := finder.asked.Buckets(); many > 61 {
			t.Errorf("%s: %d buckets", from, many)
		}
	}
}

func TestStatsRefuse(t *testing.T) {
	for _, c := range []struct{ query, pointer string }{
		{"every=5m", "?every"},
		{"from=-1h&every=0s", "?every"},
		{"from=-1h&every=5", "?every"},
		{"from=-1h&every=often", "?every"},
		{"from=-7d&every=1s", "?every"},
		{"by=a*", "?by"},
		{"by=" + strings.Repeat("a&by=", 8) + "a", "?by"},
		{"by=a&by=b&by=c&of=ms", "?by"},
		{"by=a&by=b&by=c&from=-1h&every=1h", "?by"},
		{"by=-a", "?by"},
		{"by=a%C2%A0b", "?by"},
		{"by=", "?by"},
		{"of=a:b", "?of"},
		{"top=0", "?top"},
		{"top=101", "?top"},
		{"limit=5", "?limit"},
		{"q=level:loud", "?q"},
		{"from=yesterday", "?from"},
	} {
		values, err := url.ParseQuery(c.query)
		testenv.Must(t, err)
		status, body := stats(t, new(counted), values.Encode(), "")
		var problem struct {
			Errors []struct{ Pointer, Fix string }
		}
		if err := json.Unmarshal([]byte(body), &problem); err != nil || status != http.StatusBadRequest || len(problem.Errors) == 0 ||
			problem.Errors[0].Pointer != c.pointer || problem.Errors[0].Fix == "" {
			t.Errorf("%s: %d %s, want a fault at %s with a fix", c.query, status, body, c.pointer)
		}
	}
}

var errStore = errors.New("the store is away")

type broken struct{ searches.Finder }

func (broken) Count(context.Context, string, ingest.Count, int) (ingest.Counted, error) {
	return ingest.Counted{}, errStore
}

// Times at both ends of what can be written are no fault.
func TestStatsAtTheEdgesOfTime(t *testing.T) {
	for _, query := range []string{"from=0000-01-01T00:00:00Z&every=auto", "from=0000-01-01T00:00:00Z&to=0001-12-31T23:59:59Z&every=1000d", "from=9999-12-31T23:00:00Z&to=9999-12-31T23:59:59Z&every=1m"} {
		if status, body := stats(t, new(counted), query, ""); status != http.StatusOK || !strings.Contains(body, `"buckets":[{"at":"`+query[5:9]) {
			t.Errorf("%s: %d %.200s", query, status, body)
		}
	}
}

func TestStatsOfABrokenStore(t *testing.T) {
	if status, body := stats(t, broken{}, "", ""); status != http.StatusInternalServerError || strings.Contains(body, errStore.Error()) {
		t.Errorf("%d %s", status, body)
	}
}
