package http_test

import (
	"reflect"
	"strings"
	"testing"
)

// The links of a group are a member of it, and replaced as a whole.
func TestLinks(t *testing.T) {
	api := newAPI(t)
	path := alpha(t, api)
	ticket := map[string]any{"url": "https://tracker.example/1", "title": "PAY-1", "webhook": "whk_1"}
	for range 2 {
		status, group := patch(t, api, path, `{"external_links":[{"url":"https://tracker.example/1","title":"PAY-1","webhook":"whk_1"}]}`, "once")
		if status != 200 || !reflect.DeepEqual(group["external_links"], []any{ticket}) || group["version"] != 1.0 {
			t.Fatalf("linked: %d %v", status, group)
		}
	}
	_, list := get(t, api, "/v1/projects/shop/error-groups?q=alpha")
	if of := list["items"].([]any)[0].(map[string]any); !reflect.DeepEqual(of["external_links"], []any{ticket}) {
		t.Errorf("listed: %v", of)
	}
	if status, refused := patch(t, api, path, `{"external_links":[{"url":"javascript:alert(1)"}]}`, ""); status != 400 ||
		refused["errors"].([]any)[0].(map[string]any)["pointer"] != "/external_links/0/url" {
		t.Errorf("a script: %d %v", status, refused)
	}
	for _, id := range []string{"whk_2", "whk_of_others", "tickets"} {
		status, refused := patch(t, api, path, `{"external_links":[{"url":"https://tracker.example/2","webhook":"`+id+`"}]}`, "")
		if fault, _ := refused["errors"].([]any)[0].(map[string]any); status != 400 || fault["pointer"] != "/external_links/0/webhook" ||
			!strings.Contains(fault["detail"].(string), id) || !strings.Contains(fault["fix"].(string), "GET /v1/organizations/{organization}/webhooks") {
			t.Errorf("of the webhook %s: %d %v", id, status, refused)
		}
	}
	if status, conflict := patch(t, api, path, `{"external_links":[],"if_version":0}`, ""); status != 409 {
		t.Errorf("of an old version: %d %v", status, conflict)
	}
	if status, group := patch(t, api, path, `{"external_links":[],"if_version":1}`, ""); status != 200 || len(group["external_links"].([]any)) != 0 {
		t.Errorf("removed: %d %v", status, group)
	}
	_, activity := get(t, api, path+"/activity")
	items := activity["items"].([]any)
	if last := items[0].(map[string]any); len(items) != 2 || last["kind"] != "unlinked" || !reflect.DeepEqual(last["link"], ticket) || last["actor"] != "key_1" {
		t.Errorf("activity: %v", items)
	}
	if status, _ := patch(t, api, "/v1/projects/shop/error-groups", `{"external_links":[]}`, ""); status != 400 {
		t.Errorf("of a whole search: %d", status)
	}
}
