package gateway_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlog/weir/deploy/gateway"
	"github.com/weirlog/weir/shared/httpapi"
)

// A fakeLog is a log of numbered entries, of which some are of the group.
type fakeLog struct {
	entries int
	member  func(n int) bool
	size    int           // bytes of an entry
	takes   time.Duration // a page
	refuses int           // from this request on with 429; 0: it never does

	pages, selections int
}

// search answers with a page, whose cursor is the number of the next entry.
func (f *fakeLog) search(w http.ResponseWriter, r *http.Request) {
	if f.pages++; f.pages == f.refuses {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"code":"overloaded"}`)
		return
	}
	time.Sleep(f.takes)
	query := r.URL.Query()
	from, _ := strconv.Atoi(query.Get("cursor"))
	limit, _ := strconv.Atoi(query.Get("limit"))
	var items []string
	for n := from; n < min(from+limit, f.entries); n++ {
		items = append(items, fmt.Sprintf(`{"id":"e%d","organization":"org_1","project":"prj_1","environment":"","received_at":"2026-11-21T12:00:00Z","later":1,"entry":{"n": %d,"x":"<%s"}}`,
			n, n, strings.Repeat("x", f.size)))
	}
	next := "null"
	if from+limit < f.entries {
		next = fmt.Sprintf(`"%d"`, from+limit)
	}
	w.Header().Set("X-Ratelimit-Remaining", "3")
	fmt.Fprintf(w, `{"items":[%s],"next_cursor":%s,"scanned_bytes":1}`, strings.Join(items, ","), next)
}

// sel answers which entries are of the group.
func (f *fakeLog) sel(w http.ResponseWriter, r *http.Request) {
	f.selections++
	body, _ := io.ReadAll(r.Body)
	var asked struct {
		Items []struct {
			ID    string          `json:"id"`
			Later any             `json:"later"`
			Entry struct{ N int } `json:"entry"`
		} `json:"items"`
	}
	err := json.Unmarshal(body, &asked)
	found := []string{}
	for _, item := range asked.Items {
		if item.Later != nil {
			err = fmt.Errorf("%s has what grouping does not know", item.ID)
		}
		if f.member(item.Entry.N) {
			found = append(found, item.ID)
		}
	}
	if err != nil || len(asked.Items) > 200 || len(body) > 4<<20 || r.Header.Get("Content-Type") != "application/json" {
		panic(fmt.Sprintf("%d items of %d bytes: %v", len(asked.Items), len(body), err))
	}
	w.Header().Set("X-Ratelimit-Remaining", "3")
	_ = json.NewEncoder(w).Encode(map[string]any{"entries": found})
}

// grouping answers for a group.
func (f *fakeLog) grouping(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Header.Get("X-Api-Key")+r.Header.Get("Cookie") == "":
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"code":"missing_api_key"}`)
	case strings.HasSuffix(r.URL.Path, "/select"):
		f.sel(w, r)
	case r.Method == http.MethodPost:
		body, _ := io.ReadAll(r.Body)
		if len(body) > 4<<20 || strings.Contains(string(body), `"later"`) {
			panic(fmt.Sprintf("grouping does not read %d bytes: %.200s", len(body), body))
		}
		fmt.Fprintf(w, "[%s %.60s]", r.URL.RequestURI(), body)
	case strings.HasPrefix(r.URL.Path, "/console/"):
		fmt.Fprint(w, `<div data-part="occurrences" data-query="project=prj_1&amp;q=x">None</div>`)
	case r.URL.Path != "/v1/error-groups/grp_1":
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"code":"not_found"}`)
	default:
		fmt.Fprint(w, `{"id":"grp_1","entries":{"project":"prj_1","q":"error.type:\"E\"","from":"2026-11-21T12:00:00Z","to":null}}`)
	}
}

func (f *fakeLog) gateway(t *testing.T) http.Handler {
	backends := map[gateway.Module]gateway.Backend{}
	for name, answer := range map[gateway.Module]http.HandlerFunc{
		gateway.Ingest: f.search, gateway.Grouping: f.grouping, gateway.Ledger: part, gateway.Tenants: part,
	} {
		backends[name] = gateway.Local(answer, func() error { return nil }, func() []httpapi.Backlog { return nil })
	}
	return newGateway(t, backends)
}

type occurrencesPage struct {
	Items []struct {
		ID    string          `json:"id"`
		Entry json.RawMessage `json:"entry"`
	} `json:"items"`
	Next       *string `json:"next_cursor"`
	Incomplete bool    `json:"incomplete"`
}

func occurrencesOf(t *testing.T, handler http.Handler, query string) (page occurrencesPage, answer *httptest.ResponseRecorder) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/v1/error-groups/grp_1/occurrences?"+query, nil)
	r.Header.Set("X-Api-Key", "key")
	answer = httptest.NewRecorder()
	handler.ServeHTTP(answer, r)
	if err := json.Unmarshal(answer.Body.Bytes(), &page); err != nil {
		t.Fatalf("%d %s: %v", answer.Code, answer.Body, err)
	}
	return page, answer
}

// most is how many entries of a size fit in an answer.
func most(size int) int { return 8 << 20 / (size + 200) }

// Pages of any size have all entries of the group, in their order and each once, with few questions, however rare they are.
func TestOccurrences(t *testing.T) {
	for name, log := range map[string]*fakeLog{
		"all":      {entries: 300, member: func(int) bool { return true }},
		"half":     {entries: 300, member: func(n int) bool { return n%2 == 1 }},
		"rare":     {entries: 3000, member: func(n int) bool { return n%500 == 7 }},
		"late":     {entries: 2000, member: func(n int) bool { return n >= 1990 }},
		"none":     {entries: 500, member: func(int) bool { return false }},
		"nothing":  {entries: 0},
		"huge":     {entries: 60, size: 500 << 10, member: func(n int) bool { return n%5 > 0 }},
		"as large": {entries: 20, size: 500 << 10, member: func(n int) bool { return n%3 > 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			handler := log.gateway(t)
			for _, limit := range []int{1, 7, 100} {
				want, at, cursor := 0, 0, ""
				for ; ; at++ {
					page, answer := occurrencesOf(t, handler, fmt.Sprintf("limit=%d&cursor=%s", limit, cursor))
					for _, item := range page.Items {
						for !log.member(want) {
							want++
						}
						if item.ID != fmt.Sprintf("e%d", want) || !strings.HasPrefix(string(item.Entry), fmt.Sprintf(`{"n": %d,"x":"<`, want)) {
							t.Fatalf("item %s: %.40s, want %d", item.ID, item.Entry, want)
						}
						want++
					}
					if len(page.Items) > limit || page.Next != nil && len(page.Items) < min(limit, most(log.size)) && !page.Incomplete || answer.Body.Len() > 9<<20 {
						t.Fatalf("a page of %d has %d items: %+v", limit, len(page.Items), page.Next)
					}
					if page.Next == nil {
						break
					}
					cursor = *page.Next
				}
				for ; want < log.entries; want++ {
					if log.member(want) {
						t.Fatalf("entry %d is missing", want)
					}
				}
			}
			t.Logf("%d pages, %d selections", log.pages, log.selections)
		})
	}
}

// A page ends in time and says so; what a module refuses is passed on, unless something was found.
func TestOccurrencesThatEndEarly(t *testing.T) {
	half := func(n int) bool { return n%2 == 0 }
	for name, c := range map[string]struct {
		log        *fakeLog
		query      string
		status     int
		items      int
		incomplete bool
	}{
		"slow":            {&fakeLog{entries: 10_000, member: half, takes: 1200 * time.Millisecond}, "limit=1000", 200, 500, true},
		"never":           {&fakeLog{entries: 10, member: half, takes: time.Hour}, "", 200, 0, true},
		"refused":         {&fakeLog{entries: 10, member: half, refuses: 1}, "", 429, 0, false},
		"refused at last": {&fakeLog{entries: 1000, member: func(n int) bool { return n > 900 }, refuses: 3}, "limit=1", 200, 0, true},
		"slow and large":  {&fakeLog{entries: 60, member: half, size: 1 << 20, takes: 1200 * time.Millisecond}, "limit=50", 200, 7, false},
		"refused later":   {&fakeLog{entries: 1000, member: half, refuses: 2}, "limit=100", 200, 50, true},
		"a wrong cursor":  {&fakeLog{}, "cursor=x", 400, 0, false},
		"a wrong limit":   {&fakeLog{}, "limit=1001", 400, 0, false},
		"a wrong name":    {&fakeLog{}, "q=x", 400, 0, false},
		"within the time": {&fakeLog{entries: 10, member: half, takes: 300 * time.Millisecond}, "limit=5", 200, 5, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				page, answer := occurrencesOf(t, c.log.gateway(t), c.query)
				if answer.Code != c.status || len(page.Items) != c.items || page.Incomplete != c.incomplete || c.incomplete && page.Next == nil {
					t.Errorf("%d, %d items, incomplete %t: %.200s", answer.Code, len(page.Items), page.Incomplete, answer.Body)
				}
				if took := time.Since(began); took > 15*time.Second {
					t.Errorf("took %s", took)
				}
				if c.status == 429 && answer.Header().Get("Retry-After") != "7" || c.status == 200 && c.log.takes < time.Hour && answer.Header().Get("X-Ratelimit-Remaining") != "3" {
					t.Errorf("headers %v", answer.Header())
				}
				time.Sleep(2 * time.Hour) // until all have ended
			})
		})
	}
}

// Few searches of a project are at work at once, whatever projects forged cursors name.
func TestOccurrencesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most, found, refused atomic.Int64
		backends := map[gateway.Module]gateway.Backend{}
		for _, name := range gateway.Modules() {
			backends[name] = gateway.Local(http.HandlerFunc((&fakeLog{}).grouping), func() error { return nil }, func() []httpapi.Backlog { return nil })
		}
		backends[gateway.Ingest] = gateway.Local(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("project") != "prj_1" {
				t.Errorf("searches %s", r.URL.RawQuery)
			}
			most.Store(max(most.Load(), running.Add(1)))
			time.Sleep(900 * time.Millisecond)
			running.Add(-1)
			fmt.Fprint(w, `{"items":[],"next_cursor":null}`)
		}), func() error { return nil }, func() []httpapi.Backlog { return nil })
		handler := newGateway(t, backends)
		var all sync.WaitGroup
		for i := range 30 {
			all.Go(func() {
				forged := fmt.Sprintf(`{"group":"grp_1","search":{"project":"prj_%d","q":"x"}}`, i)
				switch _, answer := occurrencesOf(t, handler, "cursor="+base64.RawURLEncoding.EncodeToString([]byte(forged))); answer.Code {
				case http.StatusOK:
					found.Add(1)
				case http.StatusTooManyRequests:
					refused.Add(1)
				}
			})
		}
		all.Wait()
		if most.Load() != 4 || found.Load() != 12 || refused.Load() != 18 {
			t.Errorf("%d at once, %d found, %d refused", most.Load(), found.Load(), refused.Load())
		}
	})
}

// A group that the reader can't read is refused as grouping refuses it.
func TestOccurrencesRefused(t *testing.T) {
	handler := (&fakeLog{}).gateway(t)
	for path, c := range map[string]struct {
		key, want string
		status    int
	}{
		"/v1/error-groups/grp_2/occurrences": {"key", "not_found", 404}, "/v1/error-groups/grp_1/occurrences?limit=0": {"", "missing_api_key", 401},
		"/v1/error-groups/grp_1%2Fx/occurrences": {"key", "not_found", 404},
	} {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		if c.key != "" {
			r.Header.Set("X-Api-Key", c.key)
		}
		w := httptest.NewRecorder()
		if handler.ServeHTTP(w, r); w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// The page of a group's occurrences has what grouping renders of them; its own text stays where they are not found in time.
func TestPartOfOccurrences(t *testing.T) {
	for name, c := range map[string]struct {
		log         *fakeLog
		query, want string
	}{
		"found":          {&fakeLog{entries: 2, member: func(n int) bool { return n == 1 }}, "", `[/console/errors/grp_1/occurrences {"items":[{"id":"e1"`},
		"large":          {&fakeLog{entries: 40, size: 500 << 10, member: func(int) bool { return true }}, "", `[/console/errors/grp_1/occurrences {"items":[{"id":"e0"`},
		"none":           {&fakeLog{}, "", `[/console/errors/grp_1/occurrences {"items":[],"next_cursor":null}]`},
		"never":          {&fakeLog{takes: time.Hour}, "", `{"items":[],"next_cursor":"`},
		"refused":        {&fakeLog{refuses: 1}, "", "None"},
		"a wrong cursor": {&fakeLog{}, "?cursor=x", "None"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				got := open(t, "GET", "/console/errors/grp_1/occurrences"+c.query, map[gateway.Module]http.HandlerFunc{gateway.Grouping: c.log.grouping, gateway.Ingest: c.log.search}).Body.String()
				if !strings.Contains(got, c.want) {
					t.Errorf("got %s, want %s", got, c.want)
				}
				if took := time.Since(began); took > 4500*time.Millisecond {
					t.Errorf("took %s", took)
				}
				time.Sleep(2 * time.Hour)
			})
		})
	}
}
