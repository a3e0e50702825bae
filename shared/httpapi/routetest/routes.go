package routetest

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

// routes are the mounted ones, with whether each was answered without
// an error. Safe for concurrent use.
type routes struct {
	mu       sync.Mutex
	answered map[string]bool // by "METHOD pattern"; bounded by the mounted routes
}

var observed = routes{answered: map[string]bool{}}

// Handler returns router, each of whose routes must be answered without
// an error, below 400, before Main ends.
func Handler(router chi.Router) http.Handler { return observed.handler(router) }

func (o *routes) handler(router chi.Router) http.Handler {
	err := chi.Walk(router, func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		o.note(method, pattern, false)
		return nil
	})
	if err != nil {
		panic("BUG: the function walks without errors: " + err.Error())
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		router.ServeHTTP(answer, r)
		if found := chi.NewRouteContext(); router.Match(found, r.Method, r.URL.Path) {
			o.note(r.Method, found.RoutePattern(), answer.Status() < http.StatusBadRequest)
		}
	})
}

func (o *routes) note(method, pattern string, answered bool) {
	route := method + " " + strings.ReplaceAll(pattern, "/*/", "/")
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answered[route] = o.answered[route] || answered
}

// untried returns the routes never answered without an error; also if
// no routes were given at all.
func (o *routes) untried() (found []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.answered) == 0 {
		return []string{"none was given to Handler"}
	}
	for route, answered := range o.answered {
		if !answered {
			found = append(found, route)
		}
	}
	slices.Sort(found)
	return found
}

// Main runs a package's tests, for its TestMain, and returns the exit
// status: also not 0 if a route of Handler was never answered without
// an error. It checks routes only if all tests ran.
func Main(m *testing.M) int {
	return Run(m, Check{What: "routes that no test of this package has answered without an error", Find: observed.untried})
}

// A Check finds what a package's tests left out.
type Check struct {
	What string // the text before what was found
	Find func() []string
}

// Run runs the tests, for a TestMain, and returns the exit status:
// also not 0 if all tests ran and a check finds something.
func Run(m *testing.M, checks ...Check) int {
	status := m.Run()
	if status != 0 || isPart() {
		return status
	}
	return report(os.Stderr, checks)
}

// report prints what the checks find, and returns the exit status.
func report(w io.Writer, checks []Check) (status int) {
	for _, check := range checks {
		if found := check.Find(); len(found) > 0 {
			fmt.Fprintf(w, "%s:\n\t%s\n", check.What, strings.Join(found, "\n\t"))
			status = 1
		}
	}
	return status
}

// isPart reports whether only some tests were selected.
func isPart() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list", "test.short"} {
		if value := flag.Lookup(name).Value.String(); value != "" && value != "false" {
			return true
		}
	}
	return false
}
