package http_test

import (
	"strings"
	"testing"
)

// A link is added, listed, replaced by one of the same address, and removed.
func TestLinks(t *testing.T) {
	api := newAPI(t)
	path := alpha(t, api)
	status, made := send(t, api, "POST", path+"/links", `{"url":"https://tracker.example/1","title":"PAY-1","webhook":"whk_1"}`, "once")
	if status != 201 || made["title"] != "PAY-1" || made["webhook"] != "whk_1" {
		t.Fatalf("made: %d %v", status, made)
	}
	if status, again := send(t, api, "POST", path+"/links", `{"url":"https://tracker.example/1","title":"PAY-1","webhook":"whk_1"}`, "once"); status != 201 || again["id"] != made["id"] {
		t.Errorf("sent again: %d %v", status, again)
	}
	if status, other := send(t, api, "POST", path+"/links", `{"url":"https://tracker.example/1"}`, ""); status != 201 || other["id"] != made["id"] || other["title"] != nil {
		t.Errorf("without a title: %d %v", status, other)
	}
	if _, list := send(t, api, "GET", path+"/links", "", ""); len(list["items"].([]any)) != 1 {
		t.Errorf("listed: %v", list)
	}
	if status, refused := send(t, api, "POST", path+"/links", `{"url":"javascript:alert(1)"}`, ""); status != 400 || refused["errors"].([]any)[0].(map[string]any)["pointer"] != "/url" {
		t.Errorf("a script: %d %v", status, refused)
	}
	for _, id := range []string{"whk_2", "whk_of_others", "tickets"} {
		status, refused := send(t, api, "POST", path+"/links", `{"url":"https://tracker.example/2","webhook":"`+id+`"}`, "")
		if fault, _ := refused["errors"].([]any)[0].(map[string]any); status != 400 || fault["pointer"] != "/webhook" || !strings.Contains(fault["detail"].(string), id) ||
			!strings.Contains(fault["fix"].(string), "GET /v1/organizations/{organization}/webhooks") {
			t.Errorf("of the webhook %s: %d %v", id, status, refused)
		}
	}
	for range 2 {
		if status, left := send(t, api, "DELETE", path+"/links/"+made["id"].(string), "", ""); status != 200 || len(left["items"].([]any)) != 0 {
			t.Errorf("removed: %d %v", status, left)
		}
	}
	_, activity := send(t, api, "GET", path+"/activity", "", "")
	items := activity["items"].([]any)
	if first := items[0].(map[string]any); len(items) != 3 || first["kind"] != "unlinked" || first["link"].(map[string]any)["url"] != "https://tracker.example/1" || first["actor"] != "key_1" {
		t.Errorf("activity: %v", items)
	}
	if status, _ := send(t, api, "POST", "/v1/error-groups/grp_0/links", `{"url":"https://tracker.example/1"}`, ""); status != 404 {
		t.Errorf("of no group: %d", status)
	}
}
