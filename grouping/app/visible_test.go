package app_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/grouping/app"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
)

// visibleWithin is how soon a change of state must be seen everywhere.
const visibleWithin = time.Second

// What somebody decides at one process, and what an error changes, is soon seen at another: in the list and the group of
// the API, on both pages, and as a fact. Half of the changes may take longer, as others use the machine.
func TestChangesAreSeenWithinASecond(t *testing.T) {
	r := newRig(t)
	first, _ := r.start()
	second, _ := r.start()
	awaitReady(t, first)
	awaitReady(t, second)
	key, session := r.project("acme", "shop"), r.SignIn("acme", "developer")
	awaitKeys(t, first, key)
	awaitKeys(t, second, key)
	r.Accept(logs("acme", "shop", 1, released("AlphaError", "1.0.0")))
	r.awaitApplied()
	g := list(t, first, key, "shop", "").Items[0]
	testenv.Eventually(t, func() error { return showsState(second, session, g.ID, "unresolved") })
	var took []time.Duration
	for version, change := range []struct{ status, fact, body string }{
		{"ignored", contract.TypeErrorGroupIgnored, `{"status":"ignored"}`},
		{"unresolved", contract.TypeErrorGroupUnignored, `{"status":"unresolved"}`},
		{"resolved", contract.TypeErrorGroupResolved, `{"status":"resolved"}`},
		{"unresolved", contract.TypeErrorGroupRegressed, ""},
		{"resolved", contract.TypeErrorGroupResolved, `{"status":"resolved"}`},
		{"unresolved", contract.TypeErrorGroupReopened, `{"status":"unresolved"}`},
	} {
		if change.body == "" {
			r.Accept(logs("acme", "shop", 1, released("AlphaError", "1.0.0")))
		} else {
			decide(t, first, key, g.ID, change.body)
		}
		began := time.Now()
		testenv.Eventually(t, func() error { return r.seen(second, key, session, g.ID, change.status, change.fact, int64(version+1)) })
		took = append(took, time.Since(began))
	}
	t.Logf("seen everywhere after %v", took)
	if slices.Sort(took); took[len(took)/2] > visibleWithin {
		t.Errorf("changes are seen everywhere after %v", took)
	}
}

// seen returns where the state of a group is not seen yet.
func (r *rig) seen(process *app.App, key, session, id, status, fact string, version int64) error {
	if found := list(r.t, process, key, "shop", "?status="+status).Items; len(found) != 1 {
		return fmt.Errorf("%d groups are listed as %s", len(found), status)
	}
	var shown struct {
		Status  string
		Version int64
	}
	if code := get(r.t, process, key, "/v1/error-groups/"+id, &shown); shown.Status != status || shown.Version != version {
		return fmt.Errorf("the group is %+v, answered with %d", shown, code)
	}
	if err := showsState(process, session, id, status); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, told := range r.decided {
		if strings.HasPrefix(name, fact+" ") && told.Group == id && told.Status == status && told.Version == version {
			return nil
		}
	}
	return fmt.Errorf("no %s of version %d among %d facts", fact, version, len(r.decided))
}

// showsState returns which page does not show that a group has a status.
func showsState(process *app.App, session, id, status string) error {
	for path, want := range map[string]string{"/console/errors?status=" + status: id, "/console/errors/" + id: `">` + status + "</span>"} {
		request := httptest.NewRequest(http.MethodGet, path, nil)
		request.AddCookie(&http.Cookie{Name: identity.SessionCookie, Value: session})
		answer := httptest.NewRecorder()
		process.Handler().ServeHTTP(answer, request)
		page := strings.ReplaceAll(answer.Body.String(), "regressed</span>", "unresolved</span>") // which it is
		if answer.Code != http.StatusOK || !strings.Contains(page, want) {
			return fmt.Errorf("%s answers %d without %s", path, answer.Code, want)
		}
	}
	return nil
}
