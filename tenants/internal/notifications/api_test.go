package notifications_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/api"
	"github.com/weirlog/weir/tenants/internal/notifications"
	"github.com/weirlog/weir/tenants/internal/tenantstest"
	"github.com/weirlog/weir/tenants/internal/webhook"
)

// call sends a request of org_a's token to the
// API, below its webhooks, and expects a status.
func (r *room) call(t *testing.T, want int, method, path, body string) (answer map[string]any) {
	t.Helper()
	return r.callOf(t, "org_a", want, method, path, body)
}

// callOf is call below the webhooks of any organization.
func (r *room) callOf(t *testing.T, organization string, want int, method, path, body string) (answer map[string]any) {
	t.Helper()
	mount := func(router chi.Router) {
		tenantstest.Route(router, notifications.NewAPI(&api.Kit{Clock: r.clock}, r.service, r.deliveries).Operations())
	}
	got := tenantstest.Call(t, mount, tenantstest.Token("org_a"), method, "/v1/organizations/"+organization+"/webhooks"+path, body, nil)
	if err := json.Unmarshal(got.Body.Bytes(), &answer); err != nil || got.Code != want {
		t.Fatalf("%s %s: %d, want %d: %s %v", method, path, got.Code, want, got.Body, err)
	}
	return answer
}

// items are a list's, below the webhooks of org_a.
func (r *room) items(t *testing.T, path string) (items []map[string]any) {
	t.Helper()
	for _, item := range r.call(t, 200, "GET", path, "")["items"].([]any) {
		items = append(items, item.(map[string]any))
	}
	return items
}

// A webhook is created, shown without its secret, changed,
// rotated and deleted: each answer shows its new state.
func TestAPI(t *testing.T) {
	to := newReceiver(t, 200)
	r := newRoom(t, to.Certificate())
	before := len(r.items(t, ""))
	made := r.call(t, 201, "POST", "", `{"url":"`+to.URL+`","events":["quota.exhausted"]}`)
	secret, path := made["secret"].(string), "/"+made["id"].(string)
	if !strings.HasPrefix(secret, "whsec_") || made["state"] != "on" || made["previous_secret_until"] != nil {
		t.Errorf("made: %v", made)
	}
	if shown := r.call(t, 200, "GET", path, ""); shown["url"] != to.URL || shown["secret"] != nil {
		t.Errorf("shown: %v", shown)
	}
	if all := r.items(t, ""); len(all) != before+1 || all[before]["id"] != made["id"] || all[before]["secret"] != nil {
		t.Errorf("the list: %v", all)
	}
	if first := r.call(t, 200, "GET", "?limit=1", ""); len(first["items"].([]any)) != 1 || first["next_cursor"] == nil {
		t.Errorf("the first of the list: %v", first)
	}
	if changed := r.call(t, 200, "PATCH", path, `{"state":"off"}`); changed["state"] != "off" || changed["off_at"] == nil || changed["url"] != to.URL {
		t.Errorf("switched off: %v", changed)
	}
	if rotated := r.call(t, 200, "POST", path+"/rotate", ""); rotated["secret"] == secret || rotated["previous_secret_until"] == nil {
		t.Errorf("rotated: %v", rotated)
	}
	if again := r.call(t, 409, "POST", path+"/rotate", ""); again["code"] != "webhook_rotated" {
		t.Errorf("rotated again: %v", again)
	}
	if deleted := r.call(t, 200, "DELETE", path, ""); deleted["state"] != "deleted" || deleted["url"] != to.URL {
		t.Errorf("deleted: %v", deleted)
	}
	r.call(t, 404, "GET", path, "")
}

// A webhook's messages have the format that was chosen, at first or later.
func TestFormats(t *testing.T) {
	to := newReceiver(t, 200)
	r := newRoom(t, to.Certificate())
	r.run(t)
	made := r.call(t, 201, "POST", "", `{"url":"`+to.URL+`","events":["quota.exhausted"],"format":"slack"}`)
	path := "/" + made["id"].(string)
	if made["format"] != "slack" {
		t.Errorf("made: %v", made)
	}
	r.call(t, 202, "POST", path+"/test", "")
	if sent := string(to.await(t, 1)[0].body); !strings.HasPrefix(sent, `{"text":"[`) {
		t.Errorf("in the format slack: %s", sent)
	}
	if changed := r.call(t, 200, "PATCH", path, `{"format":"standard"}`); changed["format"] != "standard" || changed["url"] != to.URL {
		t.Errorf("changed: %v", changed)
	}
	r.call(t, 202, "POST", path+"/test", "")
	if sent := string(to.await(t, 2)[1].body); !strings.HasPrefix(sent, `{"type":"webhook.test"`) {
		t.Errorf("in the format standard: %s", sent)
	}
	if kept := r.call(t, 200, "PATCH", path, `{"state":"off"}`); kept["format"] != "standard" {
		t.Errorf("switched off: %v", kept)
	}
	if kept := r.call(t, 200, "PATCH", path, `{"format":null,"url":null,"events":null}`); kept["format"] != "standard" || kept["url"] != to.URL {
		t.Errorf("changed by nulls: %v", kept)
	}
	r.call(t, 400, "PATCH", path, `{"format":""}`)
	for method, at := range map[string]string{"POST": "", "PATCH": path} {
		wrong := r.call(t, 400, method, at, `{"url":"`+to.URL+`","events":["quota.exhausted"],"format":"teams"}`)
		if text := fmt.Sprint(wrong); !strings.Contains(text, "teams") || !strings.Contains(text, "/format") {
			t.Errorf("%s of an unknown format: %v", method, wrong)
		}
	}
}

// Deliveries to a webhook are listed by state, and replayed on request.
func TestAPIOfDeliveries(t *testing.T) {
	to := newReceiver(t, 200)
	r := newRoom(t, to.Certificate())
	hook, _ := r.create(t, "org_a", to.URL)
	path := "/" + hook.ID
	tested := r.call(t, 202, "POST", path+"/test", "")
	if tested["type"] != "webhook.test" || tested["state"] != "pending" || tested["next_at"] == nil {
		t.Errorf("tested: %v", tested)
	}
	one := path + "/deliveries/" + tested["id"].(string)
	r.asSystem(t, `UPDATE deliveries SET state = 'failed'`)
	if failed := r.items(t, path+"/deliveries?state=failed"); len(failed) != 1 || failed[0]["id"] != tested["id"] || failed[0]["next_at"] != nil {
		t.Errorf("failed: %v", failed)
	}
	if pending := r.items(t, path+"/deliveries?state=pending"); len(pending) != 0 {
		t.Errorf("still to be sent: %v", pending)
	}
	r.call(t, 202, "POST", path+"/test", "")
	if first := r.call(t, 200, "GET", path+"/deliveries?limit=1", ""); first["next_cursor"] == nil {
		t.Errorf("the first of two deliveries: %v", first)
	}
	if replayed := r.call(t, 202, "POST", one+"/replay", ""); replayed["id"] != tested["id"] || replayed["state"] != "pending" {
		t.Errorf("replayed: %v", replayed)
	}
	r.asSystem(t, `UPDATE deliveries SET state = 'failed'`)
	for since, want := range map[time.Time]float64{r.clock().Add(time.Second): 0, r.clock(): 2} {
		body := `{"since":"` + since.Format(time.RFC3339Nano) + `"}`
		if answer := r.call(t, 202, "POST", path+"/replay", body); answer["replayed"] != want {
			t.Errorf("since %s: %v, want %v", since, answer, want)
		}
	}
	off := false
	if _, err := r.service.Change(t.Context(), by("org_a"), hook.Ref(), tenants.ChangeWebhook{On: &off}); err != nil {
		t.Fatal(err)
	}
	for what, body := range map[string]string{path + "/test": "", one + "/replay": "", path + "/replay": `{"since":"2026-11-20T12:00:00Z"}`} {
		if answer := r.call(t, 409, "POST", what, body); answer["code"] != "webhook_off" {
			t.Errorf("%s while it is off: %v", what, answer)
		}
	}
}

// Invalid requests are refused with the
// fault, and what is foreign is not found.
func TestAPIRefuses(t *testing.T) {
	r := newRoom(t, newReceiver(t, 200).Certificate())
	for name, c := range map[string]struct {
		organization, method, path, body string
		status                           int
		says                             string
	}{
		"an address that leads home": {"org_a", "POST", "", `{"url":"https://10.0.0.1","events":["quota.exhausted"]}`, 400, "/url"},
		"an address as one number":   {"org_a", "POST", "", `{"url":"https://2130706433/x","events":["quota.exhausted"]}`, 400, "https://2130706433/x"},
		"a dot at the end":           {"org_a", "POST", "", `{"url":"https://hooks.example./x","events":["quota.exhausted"]}`, 400, "https://hooks.example./x"},
		"an event that is none":      {"org_a", "POST", "", `{"url":"https://127.0.0.1","events":["x"]}`, 400, "/events"},
		"a state that is none":       {"org_a", "PATCH", "/whk_a", `{"state":"x"}`, 400, "/state"},
		"a delivery's state":         {"org_a", "GET", "/whk_a/deliveries?state=x", "", 400, "?state"},
		"a filter that is none":      {"org_a", "GET", "?state=on", "", 400, "?state"},
		"a time that is none":        {"org_a", "POST", "/whk_a/replay", `{"since":"soon"}`, 400, "since"},
		"an unknown webhook":         {"org_a", "GET", "/whk_none", "", 404, "whk_none"},
		"an unknown delivery":        {"org_a", "POST", "/whk_a/deliveries/msg_none/replay", "", 404, "msg_none"},
		"another's, as one's own":    {"org_a", "DELETE", "/whk_b", "", 404, "whk_b"},
		"another's":                  {"org_b", "GET", "/whk_b", "", 404, "org_b"},
		"another's list":             {"org_b", "GET", "", "", 404, "org_b"},
		"one for another":            {"org_b", "POST", "", `{"url":"https://127.0.0.1","events":["quota.exhausted"]}`, 404, "org_b"},
		"another's, to rotate":       {"org_b", "POST", "/whk_b/rotate", "", 404, "org_b"},
		"another's, to test":         {"org_b", "POST", "/whk_b/test", "", 404, "org_b"},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := json.Marshal(r.callOf(t, c.organization, c.status, c.method, c.path, c.body))
			if err != nil || !strings.Contains(string(answer), c.says) {
				t.Errorf("%s does not say %s", answer, c.says)
			}
		})
	}
	r.service = notifications.NewService(r.work, organizations{}, webhook.Keys{}, webhook.NewClient(webhook.Config{}))
	for _, path := range []string{"", "/whk_a/rotate"} {
		body := map[string]string{"": `{"url":"https://hooks.example","events":["quota.exhausted"]}`}[path]
		if answer := r.call(t, 409, "POST", path, body); answer["code"] != "webhooks_not_configured" {
			t.Errorf("%q where there are no keys: %v", path, answer)
		}
	}
}
