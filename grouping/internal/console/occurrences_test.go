package console_test

import (
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/weirlog/weir/grouping/internal/groupingtest"
	"github.com/weirlog/weir/shared/identity"
)

// hand sends JSON as a member.
func hand(pages http.Handler, path, body string, header http.Header) (int, string) {
	request := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	for name, values := range header {
		request.Header[name] = values
	}
	request.Header.Set("Content-Type", "application/json")
	request.AddCookie(&http.Cookie{Name: identity.SessionCookie, Value: session})
	answer := httptest.NewRecorder()
	pages.ServeHTTP(answer, request)
	return answer.Code, answer.Body.String()
}

// The page of a group's occurrences has a place for them, and leads to the logs where it stays empty.
func TestOccurrencesPage(t *testing.T) {
	pages := newPages(t)
	_, list := get(pages, "/console/errors?q=alpha")
	path := groupLink.FindStringSubmatch(list)[1] + "/occurrences"
	status, page := get(pages, path+"?cursor=x")
	place := regexp.MustCompile(`(?s)<div data-part="occurrences" data-query="([^"]+)">(.*?)</div>`).FindStringSubmatch(page)
	if status != http.StatusOK || place == nil || !strings.Contains(place[2], `href="/console/logs?`) || !strings.Contains(place[2], `href="`+path+`"`) {
		t.Fatalf("%d %s", status, page)
	}
	asked, err := url.ParseQuery(html.UnescapeString(place[1]))
	if err != nil || asked.Get("q") != `error.type:"AlphaError"` || asked.Get("project") != "shop" || asked.Get("from") != "2026-11-21T12:00:00Z" {
		t.Errorf("asks for %v, %v", asked, err)
	}
	for path, want := range map[string]int{"/console/errors/grp_0/occurrences": 404, "/console/errors/%ff/occurrences": 404} {
		if status, body := get(pages, path); status != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

// Entries that are handed over are selected, and shown in a part, each with a link; a request of another site is refused.
func TestSelectedOccurrences(t *testing.T) {
	pages := newPages(t)
	_, list := get(pages, "/console/errors?q=alpha")
	group := groupLink.FindStringSubmatch(list)[1]
	if status, body := hand(pages, group+"/select", groupingtest.Entries(""), nil); status != http.StatusOK || strings.TrimSpace(body) != `{"entries":["entry0","entry2"]}` {
		t.Errorf("%d %s", status, body)
	}
	status, part := hand(pages, group+"/occurrences?cursor=a", groupingtest.Entries(`,"next_cursor":"b","incomplete":true`), nil)
	for _, want := range []string{
		`href="` + group + `/occurrences">Newest`, `href="` + group + `/occurrences?cursor=b" rel="next">Older`, "it &lt;broke&gt;", "<bdi>1.0</bdi>", "prod",
		"/console/logs?from=2026-11-21T12%3A00%3A02Z&amp;project=shop&amp;q=exists%3Aerror&amp;to=2026-11-21T12%3A00%3A02.000001Z", "took too long",
	} {
		if !strings.Contains(part, want) {
			t.Errorf("%d, no %s in %s", status, want, part)
		}
	}
	if rows := strings.Count(part, `data-label="Time"`); rows != 2 || strings.Contains(part, "<html") {
		t.Errorf("%d rows in %s", rows, part)
	}
	if _, part := hand(pages, group+"/occurrences", `{"items":[],"next_cursor":null}`, nil); !strings.Contains(part, "None of its entries is kept") {
		t.Error(part)
	}
	for _, path := range []string{"/select", "/occurrences"} {
		if status, _ := hand(pages, group+path, groupingtest.Entries(""), http.Header{"Sec-Fetch-Site": {"cross-site"}}); status != http.StatusForbidden {
			t.Errorf("%s from another site: %d", path, status)
		}
		if status, _ := hand(pages, "/console/errors/grp_0"+path, groupingtest.Entries(""), nil); status != http.StatusNotFound {
			t.Errorf("%s of no group: %d", path, status)
		}
	}
}
