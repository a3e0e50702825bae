package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"testing"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
)

var (
	keyOfForm    = regexp.MustCompile(`name="key" value="([^"]+)"`)
	styleLink    = regexp.MustCompile(`/console/assets/[^"]+\.css`)
	hiddenFields = regexp.MustCompile(`type="hidden" name="([^"]+)" value="([^"]*)"`)
)

// Operators preview and change the plan of any organization, once for
// each form. Others only preview their own.
func TestChangeOfPlan(t *testing.T) {
	l := ledgertest.New(t)
	v := newVisitor(t, l, "host")
	for _, id := range []string{"acme", "host"} {
		l.Start(t, id, ledger.Indie)
	}
	v.get("host", "owner", "/organizations", http.StatusOK, `href="/console/usage/plan?organization=acme"`)
	v.get("host", "owner", "/plan?organization=acme", http.StatusOK, "plan of organization", ">acme<", "no Change the plan")
	page := v.get("host", "owner", "/plan?organization=acme&tier=scale&on_exhausted=overage", http.StatusOK, "Change to scale", `name="organization" value="acme"`)
	form := url.Values{"organization": {"acme"}, "tier": {"scale"}, "on_exhausted": {"overage"}, "key": {keyOfForm.FindStringSubmatch(page)[1]}}
	for _, other := range [][2]string{{"acme", "owner"}, {"host", "billing"}, {"host", "admin"}} {
		v.post(other[0], other[1], "/plan", form, http.StatusNotFound)
		v.get(other[0], other[1], "/plan?tier=scale", http.StatusOK, "no Change the plan", "ask the operator of this installation")
	}
	v.get("acme", "owner", "/plan?organization=host", http.StatusNotFound)
	for range 2 { // sent twice, applied once
		v.post("host", "owner", "/plan", form, http.StatusSeeOther)
	}
	now, err := l.Plans.Subscription(t.Context(), "acme")
	if err != nil || now.Plan.Tier != ledger.Scale || !now.Plan.Overage {
		t.Errorf("subscribed to %+v, error %v", now, err)
	}
	form.Set("tier", "indie")
	v.post("host", "owner", "/plan", form, http.StatusBadRequest, "was used for another request")
	form.Del("key")
	form.Set("tier", "gold")
	v.post("host", "owner", "/plan", form, http.StatusUnprocessableEntity, "The tier &#34;gold&#34; is unknown")
	v.post("host", "owner", "/plan", url.Values{"organization": {"nobody"}, "tier": {"scale"}}, http.StatusNotFound)
}

// The form has the whole current plan, to the byte, so a change keeps
// the rest. Errors stand beside their fields.
func TestAPlanOfOnesOwn(t *testing.T) {
	l := ledgertest.New(t)
	v := newVisitor(t, l, "host")
	l.Start(t, "acme", ledger.Indie)
	l.Start(t, "host", ledger.Indie)
	page := v.get("host", "owner", "/plan?organization=acme&tier=scale&quota=1.5+KiB&requests_per_minute=70&on_exhausted=overage&overage_cap=1001&anchor_day=31",
		http.StatusOK, "1.5 KiB", "accepted as overage, up to 1001 B", "begin on day 31")
	form := url.Values{"organization": {"acme"}, "key": {keyOfForm.FindStringSubmatch(page)[1]}}
	for _, hidden := range hiddenFields.FindAllStringSubmatch(page, -1) {
		form.Set(hidden[1], hidden[2])
	}
	v.post("host", "owner", "/plan", form, http.StatusSeeOther)
	now, err := l.Plans.Subscription(t.Context(), "acme")
	want := ledger.Plan{From: now.Plan.From, Tier: ledger.Scale, Quota: 1536, RequestsPerMinute: 70, Overage: true, OverageCap: 1001, TierTerms: now.Plan.TierTerms}
	if err != nil || now.Plan != want || now.NextAnchor != 31 {
		t.Errorf("subscribed to %+v, want %+v; error %v", now, want, err)
	}
	v.get("host", "owner", "/plan?organization=acme", http.StatusOK, `value="1536 B"`, `value="70"`, `value="1001 B"`, `value="31"`, `value="scale" selected`, `value="overage" selected`)
	page = v.get("host", "owner", "/plan?organization=acme&tier=scale&quota=1000&anchor_day=15", http.StatusOK)
	form = url.Values{"organization": {"acme"}, "key": {keyOfForm.FindStringSubmatch(page)[1]}, "tier": {"scale"}, "quota": {"1000"}, "anchor_day": {"15"}}
	v.post("host", "owner", "/plan", form, http.StatusSeeOther)
	v.get("host", "owner", "/plan?organization=acme", http.StatusOK, "on day 1 of", "from the next one on day 15", "1.5 KiB", "1000 B", "2026-12-01") // current and next
	for field, value := range map[string]string{
		"quota": "-1 GiB", "requests_per_minute": "1e3", "overage_cap": "100000 TiB", "anchor_day": "32",
	} {
		query := url.Values{"organization": {"acme"}, "tier": {"scale"}, "on_exhausted": {"overage"}, field: {value}}
		v.get("host", "owner", "/plan?"+query.Encode(), http.StatusUnprocessableEntity, `id="fault-`+field+`"`, `value="`+value+`"`, "no Change the plan")
		v.post("host", "owner", "/plan", query, http.StatusUnprocessableEntity, `id="fault-`+field+`"`)
	}
	page = v.get("host", "owner", "/plan?organization=acme&tier=scale&on_exhausted=refuse&overage_cap=7", http.StatusOK, "Change to scale")
	form = url.Values{"organization": {"acme"}, "key": {keyOfForm.FindStringSubmatch(page)[1]}, "tier": {"scale"}, "on_exhausted": {"refuse"}, "overage_cap": {"7"}}
	v.post("host", "owner", "/plan", form, http.StatusSeeOther) // a cap that was left in the form
}
