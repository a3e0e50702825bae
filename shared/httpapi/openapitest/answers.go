package openapitest

import (
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/weirlog/weir/shared/testenv/wholerun"
)

// Main runs a package's tests, for its TestMain, and returns the exit
// status: also not 0 if an answer that a document describes was never
// given. Unproduced names answers that no test can get, as "GET
// /v1/things 429", with the reason; it is a fault to name one that was
// given, or that no document describes.
func Main(m *testing.M, unproduced map[string]string) int {
	return wholerun.Main(m, wholerun.Check{
		What: "answers that the OpenAPI document describes and no test of this package has got, or that are excused in vain",
		Find: func() []string { return observed.missing(unproduced) },
	})
}

// answers are those that documents describe, with whether each was
// given. Safe for concurrent use.
type answers struct {
	mu    sync.Mutex
	given map[string]bool // by "METHOD path status"; bounded by the documents
}

var observed = answers{given: map[string]bool{}}

// describe adds all answers of a document.
func (a *answers) describe(api *openapi3.T) {
	for path, item := range api.Paths.Map() {
		for method, operation := range item.Operations() {
			for status := range operation.Responses.Map() {
				a.note(method, path, status, false)
			}
		}
	}
}

func (a *answers) note(method, path, status string, given bool) {
	answer := method + " " + path + " " + status
	a.mu.Lock()
	defer a.mu.Unlock()
	a.given[answer] = a.given[answer] || given
}

// missing returns the answers never given and the needless excuses;
// also if no document was read at all.
func (a *answers) missing(excused map[string]string) (found []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.given) == 0 {
		return []string{"all: no document was read"}
	}
	for _, answer := range slices.Sorted(maps.Keys(a.given)) {
		if reason := excused[answer]; a.given[answer] == (reason != "") {
			found = append(found, answer)
		}
	}
	for _, answer := range slices.Sorted(maps.Keys(excused)) {
		if _, described := a.given[answer]; !described {
			found = append(found, answer+", which no document describes")
		}
	}
	return found
}
