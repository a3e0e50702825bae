package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"testing"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
)

var keyOfForm = regexp.MustCompile(`name="key" value="([^"]+)"`)

// Who runs the installation previews another plan of any organization, and
// decides it with the form below, once; others only preview their own.
func TestChangeOfPlan(t *testing.T) {
	l := ledgertest.New(t)
	v := newVisitor(t, l, "host")
	for _, id := range []string{"acme", "host"} {
		l.Start(t, id, ledger.Indie)
	}
	v.sees("host", "owner", "/organizations", http.StatusOK, `href="/console/usage/plan?organization=acme"`)
	v.sees("host", "owner", "/plan?organization=acme", http.StatusOK, "of organization", ">acme<", "no Change the plan")
	page := v.sees("host", "owner", "/plan?organization=acme&tier=scale&on_exhausted=overage", http.StatusOK, "Change to scale", `name="organization" value="acme"`)
	form := url.Values{"organization": {"acme"}, "tier": {"scale"}, "on_exhausted": {"overage"}, "key": {keyOfForm.FindStringSubmatch(page)[1]}}
	for _, other := range [][2]string{{"acme", "owner"}, {"host", "billing"}, {"host", "admin"}} {
		v.posts(other[0], other[1], "/plan", form, http.StatusNotFound)
		v.sees(other[0], other[1], "/plan?tier=scale", http.StatusOK, "no Change the plan", "who runs the installation")
	}
	v.sees("acme", "owner", "/plan?organization=host", http.StatusNotFound)
	for range 2 { // sent twice, decided once
		v.posts("host", "owner", "/plan", form, http.StatusSeeOther)
	}
	now, err := l.Plans.Subscription(t.Context(), "acme")
	if err != nil || now.Plan.Tier != ledger.Scale || !now.Plan.Overage {
		t.Errorf("subscribed to %+v, error %v", now, err)
	}
	form.Set("tier", "indie")
	v.posts("host", "owner", "/plan", form, http.StatusBadRequest, "was used for another request")
	form.Del("key")
	form.Set("tier", "gold")
	v.posts("host", "owner", "/plan", form, http.StatusUnprocessableEntity, "The tier &#34;gold&#34; is unknown")
	v.posts("host", "owner", "/plan", url.Values{"organization": {"nobody"}, "tier": {"scale"}}, http.StatusNotFound)
}
