package http_test

import (
	nethttp "net/http"
	"strings"
	"testing"
)

// patch sends a decision, with an Idempotency-Key unless that is empty.
func patch(t *testing.T, api nethttp.Handler, path, body, idempotencyKey string) (int, map[string]any) {
	t.Helper()
	return send(t, api, nethttp.MethodPatch, path, body, idempotencyKey)
}

// alpha is the path of the group of AlphaErrors.
func alpha(t *testing.T, api nethttp.Handler) string {
	t.Helper()
	_, list := get(t, api, "/v1/projects/shop/error-groups?q=alpha")
	return "/v1/error-groups/" + list["items"].([]any)[0].(map[string]any)["id"].(string)
}

// Decisions change the group, and its activity says who made them.
func TestDecide(t *testing.T) {
	api := newAPI(t)
	path := alpha(t, api)
	status, group := patch(t, api, path, `{"status":"resolved","in_release":"2.1.0","assignee":"payments","note":"see #7"}`, "")
	if status != 200 || group["status"] != "resolved" || group["version"] != 3.0 || group["in_release"] != "2.1.0" || group["assignee"] != "payments" || group["since"] == nil {
		t.Errorf("resolved: %d %v", status, group)
	}
	status, group = patch(t, api, path, `{"status":"ignored","until":{"count":100,"per":"hour","at":"2031-01-01T00:00:00Z"},"if_version":3}`, "")
	until, _ := group["until"].(map[string]any)
	if status != 200 || group["status"] != "ignored" || until["per"] != "hour" || until["count"] != 100.0 || until["at"] != "2031-01-01T00:00:00Z" || group["in_release"] != nil {
		t.Errorf("ignored: %d %v", status, group)
	}
	if status, group = patch(t, api, path, `{"status":"unresolved","assignee":""}`, ""); status != 200 || group["status"] != "unresolved" || group["assignee"] != nil || group["version"] != 6.0 {
		t.Errorf("reopened: %d %v", status, group)
	}
	if _, found := get(t, api, "/v1/projects/shop/error-groups?status=ignored"); len(found["items"].([]any)) != 0 {
		t.Errorf("still ignored: %v", found)
	}
	_, activity := get(t, api, path+"/activity?limit=4")
	kinds := ""
	for _, item := range activity["items"].([]any) {
		made := item.(map[string]any)
		if kinds += " " + made["kind"].(string); made["actor"] != "key_1" {
			t.Errorf("who made %v", made)
		}
	}
	if kinds != " assigned unignored ignored noted" || activity["next_cursor"] == nil {
		t.Errorf("activity: %s, %v", kinds, activity)
	}
	_, rest := get(t, api, path+"/activity?cursor="+activity["next_cursor"].(string))
	if items := rest["items"].([]any); len(items) != 2 || items[1].(map[string]any)["in_release"] != "2.1.0" || rest["next_cursor"] != nil {
		t.Errorf("the rest: %v", rest)
	}
}

// The second of two sees what the first did, and repeats without effect.
func TestDecideAtOnce(t *testing.T) {
	api := newAPI(t)
	path := alpha(t, api)
	_, first := patch(t, api, path, `{"status":"resolved","if_version":0}`, "once")
	status, again := patch(t, api, path, `{"status":"resolved","if_version":0}`, "once")
	if status != 200 || again["version"] != first["version"] || again["since"] != first["since"] {
		t.Errorf("repeated: %d %v, and was %v", status, again, first)
	}
	if status, other := patch(t, api, path, `{"status":"ignored"}`, "once"); status != 400 || other["code"] != "idempotency_key_reused" {
		t.Errorf("another request with its key: %d %v", status, other)
	}
	status, conflict := patch(t, api, path, `{"status":"ignored","if_version":0}`, "")
	since, _ := conflict["activity"].([]any)
	if status != 409 || conflict["code"] != "version_conflict" || conflict["version"] != 1.0 || len(since) != 1 || since[0].(map[string]any)["kind"] != "resolved" {
		t.Errorf("the second: %d %v", status, conflict)
	}
}

// All groups of a search are decided about, those that are so already are not.
func TestDecideAll(t *testing.T) {
	api := newAPI(t)
	for _, c := range []struct {
		query, body   string
		changed, left float64
	}{
		{"?q=alpha", `{"status":"resolved","note":"all"}`, 1, 0},
		{"", `{"status":"resolved"}`, 1, 0},
		{"?status=unresolved", `{"status":"resolved"}`, 0, 0},
		{"", `{"assignee":"payments"}`, 2, 0},
		{"?assignee=payments&q=beta", `{"assignee":"checkout","status":"resolved"}`, 1, 0},
		{"?assignee=payments", `{"status":"unresolved"}`, 1, 0},
	} {
		status, done := patch(t, api, "/v1/projects/shop/error-groups"+c.query, c.body, c.query+c.body)
		if status != 200 || done["changed"] != c.changed || done["left"] != c.left {
			t.Errorf("%s %s: %d %v", c.query, c.body, status, done)
		}
		if _, again := patch(t, api, "/v1/projects/shop/error-groups"+c.query, c.body, c.query+c.body); again["changed"] != c.changed {
			t.Errorf("repeated, %s %s: %v", c.query, c.body, again)
		}
	}
}

// What is wrong is named, with a way out, and nothing happens.
func TestDecideRefusals(t *testing.T) {
	api := newAPI(t)
	path := alpha(t, api)
	for body, pointer := range map[string]string{
		`{}`: "", `{"status":"closed"}`: "/status", `{"status":"ignored","in_release":"next"}`: "/in_release", `{"status":"resolved","in_release":"next"}`: "/in_release",
		`{"status":"resolved","in_release":"current"}`: "/in_release", `{"status":"ignored","until":{}}`: "/until", `{"status":"ignored","until":{"per":"hour"}}`: "/until/per",
		`{"status":"ignored","until":{"count":3,"per":"year"}}`: "/until/per", `{"status":"ignored","until":{"at":"2020-01-01T00:00:00Z"}}`: "/until/at",
		`{"assignee":" "}`: "/assignee", `{"assignee":"mem_gone"}`: "/assignee", `{"note":"` + strings.Repeat("n", 2001) + `"}`: "/note", `{"state":"resolved"}`: "/state",
	} {
		status, refused := patch(t, api, path, body, "")
		faults, _ := refused["errors"].([]any)
		if status != 400 || len(faults) != 1 || faults[0].(map[string]any)["pointer"] != pointer || faults[0].(map[string]any)["fix"] == "" {
			t.Errorf("%.80s: %d %v, want a fault at %q", body, status, refused, pointer)
		}
	}
	for path, want := range map[string]int{
		"/v1/error-groups/grp_0": 404, "/v1/error-groups/%00": 404, "/v1/projects/lair/error-groups": 404, "/v1/projects/shop/error-groups?limit=1": 400,
		"/v1/projects/shop/error-groups?level=loud": 400,
	} {
		if status, body := patch(t, api, path, `{"status":"resolved"}`, ""); status != want {
			t.Errorf("%s: %d %v, want %d", path, status, body, want)
		}
	}
	if status, body := patch(t, api, "/v1/projects/shop/error-groups", `{"note":"all"}`, ""); status != 400 {
		t.Errorf("a note about all: %d %v", status, body)
	}
	if _, group := get(t, api, path); group["version"] != 0.0 {
		t.Errorf("it is %v", group)
	}
}
