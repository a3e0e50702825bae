//go:build replicas

package e2e

import (
	"flag"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/testenv"
)

var slowest = flag.Duration("p99", time.Second, "how slow p99 of the answers to posts may be outside of events")

// Limits around events.
const (
	calmAnswers = 200             // accepted posts between two
	settled     = 5 * time.Second // time after one that still belongs to it
)

// An event is something that happens to an installation.
type event struct{ begun, ended time.Time }

// calm waits for further accepted posts.
func (a *answers) calm(t *testing.T) {
	t.Helper()
	before := a.accepted()
	testenv.Eventually(t, setupTimeout, func() error {
		if now := a.accepted(); now < before+calmAnswers {
			return fmt.Errorf("%d posts were accepted, %d before", now, before)
		}
		return nil
	})
}

func (a *answers) accepted() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.all {
		if one.post && one.status == http.StatusOK {
			n++
		}
	}
	return n
}

// fast fails the test if p99 of the posts outside of events is too
// slow, or one of them failed.
func (a *answers) fast(t *testing.T, events []event) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	var took []time.Duration
	for _, one := range a.all {
		if !one.post || slices.ContainsFunc(events, one.during) {
			continue
		}
		if one.failed() {
			t.Errorf("at %s, outside of events, a post was answered %d", one.begun.Format(time.TimeOnly), one.status)
		}
		took = append(took, one.took)
	}
	slices.Sort(took)
	p99 := took[len(took)*99/100]
	t.Logf("%d posts outside of events: p50 %s, p99 %s", len(took), took[len(took)/2], p99)
	if p99 > *slowest {
		t.Errorf("p99 is %s, want %s", p99, *slowest)
	}
}

func (one answered) during(e event) bool {
	return one.begun.Add(one.took).After(e.begun) && one.begun.Before(e.ended.Add(settled))
}
