package query_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/grouping/internal/query"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
)

// A filter that can't be read is refused by name, with a way out: to ignore it
// would show too much.
func TestParse(t *testing.T) {
	for asked, pointer := range map[string]string{
		"": "", "status=ignored&level=error&level=fatal&environment=&q=a+b&assignee=x&new_since=deploy&sort=users&from=2026-11-21T12:00:00Z&to=2026-11-21T12:00:00Z": "",
		"status=open": "?status", "level=Error": "?level", "level=": "?level", "from=yesterday": "?from", "from=2026-11-21T12:00:00%2B02:00": "?from",
		"to=2026-02-30T12:00:00Z": "?to", "from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z": "?to", "q=%20": "?q", "q=%20%00%2C": "?q",
		"q=" + strings.Repeat("a+", 21): "?q", "q=" + strings.Repeat("a", 257): "?q", "environment=%ff": "?environment", "assignee=%00": "?assignee",
		"q=is:open": "?q", "q=level:loud": "?q", "q=assigned:me": "?q", "q=is:resolved+type:KeyError+12:30+type:": "", "new_since=birth": "?new_since", "sort=age": "?sort", "limit=0": "?limit", "limit=1001": "?limit",
	} {
		_, err := query.Parse(httptest.NewRequest("GET", "/?"+asked, nil))
		problem, refused := errors.AsType[*httpapi.Problem](err)
		if refused != (pointer != "") || refused && (len(problem.Faults) != 1 || problem.Faults[0].Pointer != pointer || problem.Faults[0].Fix == "") {
			t.Errorf("%q: %v, want a fault at %q", asked, err, pointer)
		}
	}
}

// One line says it all: what is no known field is a word.
func TestSearchLine(t *testing.T) {
	for line, want := range map[string]postgres.GroupQuery{
		"is:unresolved type:KeyError release:1.2 assigned:me": {Status: grouping.Unresolved, Type: "KeyError", Release: "1.2", Assignee: "mem_1"},
		"cart level:fatal environment:prod assigned:nobody": {Words: []string{"cart"}, Severities: grouping.SeverityFatal, Environments: []string{"prod"},
			Unassigned: true},
		`release:"my app" "level:verbose" "out of" memory`: {Release: "my app", Words: []string{"level:verbose", "out of", "memory"}},
		"at 12:30 http://shop.example assigned:payments":   {Words: []string{"at", "12:30", "http://shop.example"}, Assignee: "payments"},
	} {
		r := httptest.NewRequest("GET", "/?q="+url.QueryEscape(line), nil)
		got, err := query.Parse(r.WithContext(identity.NewContext(r.Context(), identity.Principal{Member: "mem_1"})))
		if want.Limit = got.Limit; err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", line, got, err)
		}
	}
}

// What the search line offers can be searched for.
func TestOffers(t *testing.T) {
	for _, offered := range query.Offers() {
		r := httptest.NewRequest("GET", "/?q="+url.QueryEscape(strings.TrimSuffix(offered, ":")+map[bool]string{true: ":x"}[strings.HasSuffix(offered, ":")]), nil)
		got, err := query.Parse(r.WithContext(identity.NewContext(r.Context(), identity.Principal{Member: "mem_1"})))
		if err != nil || len(got.Words) > 0 {
			t.Errorf("%s: %+v, %v", offered, got, err)
		}
	}
}

// A field is taken out of a search line, and all else stays.
func TestSearchLineWithout(t *testing.T) {
	for line, want := range map[string]string{
		"": "", "is:resolved": "", ` a is:resolved "is:ignored"  release:"my app" this:is:x is:`: `a "is:ignored" release:"my app" this:is:x is:`,
	} {
		if got := query.Without(line, "is"); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// A search line that can't be meant, or names a state or level that is none, says so.
func TestSearchLineRefuses(t *testing.T) {
	for asked, parameter := range map[string]string{
		"q=is:open": "q", "q=level:verbose": "q", "q=type:A+type:B": "q", "q=is:resolved+is:ignored": "q", "q=assigned:me": "q",
		"assignee=me": "assignee", "q=assigned:nobody&assignee=bob": "assignee", "q=is:resolved&status=ignored": "status", "q=%22%22": "q", "q=service:pay": "q", "q=host:web-1": "q",
	} {
		_, err := query.Parse(httptest.NewRequest("GET", "/?"+asked, nil))
		var problem *httpapi.Problem
		if !errors.As(err, &problem) || !strings.Contains(fmt.Sprint(problem.Detail, problem.Faults), parameter) {
			t.Errorf("%s: %v", asked, err)
		}
	}
}
