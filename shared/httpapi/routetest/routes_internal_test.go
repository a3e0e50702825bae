package routetest

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
)

// A route counts as tried once it was answered without an error, by its
// method and with any parameters.
func TestUntried(t *testing.T) {
	router := chi.NewRouter()
	answers := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
	}
	router.Get("/a/{id}", answers(http.StatusOK))
	router.Post("/a/{id}", answers(http.StatusConflict))
	router.Get("/silent", func(http.ResponseWriter, *http.Request) {})
	router.Group(func(group chi.Router) { group.Delete("/never", answers(http.StatusOK)) })
	o := &routes{answered: map[string]bool{}}
	if found := o.untried(); len(found) != 1 {
		t.Errorf("of no routes: %q", found)
	}
	handler := o.handler(router)
	for _, request := range [][2]string{{"GET", "/a/1"}, {"POST", "/a/1"}, {"GET", "/silent"}, {"GET", "/none"}} {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(request[0], request[1], nil))
	}
	if want, got := []string{"DELETE /never", "POST /a/{id}"}, o.untried(); !slices.Equal(got, want) {
		t.Errorf("untried are %q, want %q", got, want)
	}
}

// What a check finds is printed, and ends the run with an error.
func TestReport(t *testing.T) {
	none := Check{"nothing", func() []string { return nil }}
	some := Check{"routes without a test", func() []string { return []string{"GET /a", "GET /b"} }}
	var printed strings.Builder
	if status := report(&printed, []Check{none}); status != 0 || printed.Len() > 0 {
		t.Errorf("status %d, %q", status, printed.String())
	}
	if status := report(&printed, []Check{some, none}); status != 1 || printed.String() != "routes without a test:\n\tGET /a\n\tGET /b\n" {
		t.Errorf("status %d, %q", status, printed.String())
	}
}
