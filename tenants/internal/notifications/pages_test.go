package notifications_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/notifications"
	"github.com/weirlog/weir/tenants/internal/tenantstest"
	"github.com/weirlog/weir/tenants/internal/webhook"
)

// browse sends a request of org_a's billing member to the pages.
func (r *room) browse(t *testing.T, method, path string, form url.Values) *httptest.ResponseRecorder {
	t.Helper()
	pages := notifications.NewPages(tenantstest.Pages(), r.service, r.deliveries)
	return tenantstest.Call(t, func(router chi.Router) { pages.Mount(router) }, tenantstest.SignedIn("a", tenants.Billing), method, path, "", form)
}

const webhooksPath = "/console/settings/webhooks"

// A member creates a webhook, sees its secret
// once, tests it, and replays what failed.
func TestPages(t *testing.T) {
	to := newReceiver(t, 500)
	r := newRoom(t, to.Certificate())
	created := r.browse(t, "POST", webhooksPath, url.Values{"url": {to.URL}, "events": {"quota.exhausted"}, "form": {"form_1"}})
	path := regexp.MustCompile(webhooksPath + `/whk_\w+`).FindString(created.Body.String())
	if created.Code != 201 || !strings.Contains(created.Body.String(), "whsec_") || path == "" {
		t.Fatalf("created: %d %s", created.Code, created.Body)
	}
	if again := r.browse(t, "POST", webhooksPath, url.Values{"url": {to.URL}, "events": {"quota.exhausted"}, "form": {"form_1"}}); again.Code != 409 {
		t.Errorf("the same form again: %d %s", again.Code, again.Body)
	}
	if bad := r.browse(t, "POST", webhooksPath, url.Values{"url": {"https://10.0.0.1"}}); bad.Code != 422 ||
		!strings.Contains(bad.Body.String(), `id="fault-url"`) {
		t.Errorf("an address that leads home: %d %s", bad.Code, bad.Body)
	}
	if tested := r.browse(t, "POST", path+"/test", url.Values{"form": {"form_2"}}); tested.Code != 303 {
		t.Fatalf("tested: %d %s", tested.Code, tested.Body)
	}
	if shown := r.browse(t, "GET", path, nil).Body.String(); !strings.Contains(shown, "webhook.test") || strings.Contains(shown, "whsec_") {
		t.Errorf("the webhook: %s", shown)
	}
	if form := r.browse(t, "GET", path+"/edit", nil).Body.String(); !strings.Contains(form, `<option value="standard" selected>`) {
		t.Errorf("the form says no format: %s", form)
	}
	if bad := r.browse(t, "POST", path+"/edit", url.Values{"url": {to.URL}, "events": {"quota.exhausted"}, "format": {"teams"}}); bad.Code != 422 ||
		!strings.Contains(bad.Body.String(), `id="fault-format"`) {
		t.Errorf("an unknown format: %d %s", bad.Code, bad.Body)
	}
	off := url.Values{"url": {to.URL}, "events": {"quota.exhausted"}, "format": {"slack"}, "state": {"off"}}
	if changed := r.browse(t, "POST", path+"/edit", off); changed.Code != 303 {
		t.Fatalf("switched off: %d %s", changed.Code, changed.Body)
	}
	if refused := r.browse(t, "POST", path+"/replay", url.Values{"form": {"form_3"}}); refused.Code != 409 {
		t.Errorf("sent again while it is off: %d", refused.Code)
	}
	if shown := r.browse(t, "GET", path, nil).Body.String(); !strings.Contains(shown, "<dd>slack</dd>") {
		t.Errorf("its format: %s", shown)
	}
	off.Set("state", "on")
	r.browse(t, "POST", path+"/edit", off)
	if shown := r.browse(t, "GET", path, nil).Body.String(); !strings.Contains(shown, "Send all failed ones again") {
		t.Errorf("the failed one is not offered: %s", shown)
	}
	if again := r.browse(t, "POST", path+"/replay", url.Values{"form": {"form_3"}}); again.Code != 303 {
		t.Errorf("sent again: %d %s", again.Code, again.Body)
	}
	if shown := r.browse(t, "GET", path, nil).Body.String(); !strings.Contains(shown, "waiting") {
		t.Errorf("after that: %s", shown)
	}
	if rotated := r.browse(t, "POST", path+"/rotate", url.Values{"form": {"form_4"}}); rotated.Code != 200 || !strings.Contains(rotated.Body.String(), "whsec_") {
		t.Errorf("rotated: %d %s", rotated.Code, rotated.Body)
	}
	if deleted := r.browse(t, "POST", path+"/delete", url.Values{"form": {"form_5"}}); deleted.Code != 303 || r.browse(t, "GET", path, nil).Code != http.StatusNotFound {
		t.Errorf("deleted: %d %s", deleted.Code, deleted.Body)
	}
}

// The forms show the present state, refuse invalid
// input but keep it, and one delivery is replayed.
func TestForms(t *testing.T) {
	to := newReceiver(t, 500)
	r := newRoom(t, to.Certificate())
	hook, _ := r.create(t, "org_a", to.URL)
	path := webhooksPath + "/" + hook.ID
	for at, want := range map[string]string{
		webhooksPath + "/new": "Create webhook", path + "/edit": to.URL, path + "/rotate": to.URL, path + "/delete": to.URL,
	} {
		if got := r.browse(t, "GET", at, nil); got.Code != 200 || !strings.Contains(got.Body.String(), want) {
			t.Errorf("%s: %d %s", at, got.Code, got.Body)
		}
	}
	bad := url.Values{"url": {"https://10.0.0.1"}, "events": {"quota.exhausted"}, "state": {"on"}}
	if got := r.browse(t, "POST", path+"/edit", bad); got.Code != 422 || !strings.Contains(got.Body.String(), "https://10.0.0.1") || !strings.Contains(got.Body.String(), `id="fault-url"`) {
		t.Errorf("an address that leads home: %d %s", got.Code, got.Body)
	}
	r.browse(t, "POST", path+"/test", url.Values{"form": {"form_1"}})
	r.asSystem(t, `UPDATE deliveries SET state = 'failed'`)
	sent := r.sent(t, hook)
	if got := r.browse(t, "POST", path+"/deliveries/"+sent[0].ID+"/replay", url.Values{"form": {"form_2"}}); got.Code != 303 || r.sent(t, hook)[0].State != notifications.Pending {
		t.Errorf("sent again: %d %s", got.Code, got.Body)
	}
	for _, at := range []string{path + "/deliveries/msg_none/replay", webhooksPath + "/whk_b/delete"} {
		if got := r.browse(t, "POST", at, url.Values{"form": {"form_3"}}); got.Code != 404 {
			t.Errorf("%s, which is not there: %d %s", at, got.Code, got.Body)
		}
	}
}

// Without keys, webhooks are not offered.
func TestPagesWithoutKeys(t *testing.T) {
	to := newReceiver(t, 200)
	r := newRoom(t, to.Certificate())
	r.service = notifications.NewService(r.work, organizations{}, webhook.Keys{}, webhook.NewClient(webhook.Config{}))
	if shown := r.browse(t, "GET", webhooksPath, nil).Body.String(); !strings.Contains(shown, "WEIR_WEBHOOK_KEYS") || strings.Contains(shown, "/new") {
		t.Errorf("the list: %s", shown)
	}
	if created := r.browse(t, "POST", webhooksPath, url.Values{"url": {"https://hooks.example"}, "events": {"quota.exhausted"}}); created.Code != 409 {
		t.Errorf("created: %d", created.Code)
	}
}

// The form of a new webhook has each event once, by subject, and none chosen.
func TestFormOfANewWebhook(t *testing.T) {
	to := newReceiver(t, 200)
	r := newRoom(t, to.Certificate())
	page := r.browse(t, "GET", webhooksPath+"/new", nil).Body.String()
	for _, fact := range contract.Notifications() {
		if strings.Count(page, `value="`+fact.Name+`"`) != 1 {
			t.Errorf("%s is not offered once: %s", fact.Name, page)
		}
	}
	if strings.Contains(page, " checked") || strings.Count(page, "<legend>Billing</legend>") != 1 || strings.Count(page, "<legend>Quota</legend>") != 1 {
		t.Errorf("events are chosen, or not by subject: %s", page)
	}
}
