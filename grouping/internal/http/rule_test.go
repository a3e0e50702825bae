package http_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

const rules = "/v1/projects/shop/error-rules"

// Rules are set, read, changed by one of two, listed and restored.
func TestRules(t *testing.T) {
	api := newAPI(t)
	if status, none := send(t, api, "GET", rules, "", ""); status != 200 || none["version"] != 0.0 || none["rules"] != "" || none["since"] != nil {
		t.Errorf("none: %d %v", status, none)
	}
	status, made := send(t, api, "PUT", rules, `{"rules":"ignore function:a","note":"noise","if_version":0}`, "once")
	if status != 200 || made["version"] != 1.0 || made["note"] != "noise" || made["actor"] != "key_1" || made["since"] == nil {
		t.Fatalf("set: %d %v", status, made)
	}
	if status, again := send(t, api, "PUT", rules, `{"rules":"ignore function:a","note":"noise","if_version":0}`, "once"); status != 200 || again["version"] != 1.0 {
		t.Errorf("the same request: %d %v", status, again)
	}
	if status, same := send(t, api, "PUT", rules, `{"rules":"ignore function:a"}`, ""); status != 200 || same["version"] != 1.0 {
		t.Errorf("the same rules: %d %v", status, same)
	}
	if status, late := send(t, api, "PUT", rules, `{"rules":"","if_version":0}`, ""); status != 409 || late["code"] != "version_conflict" || late["version"] != 1.0 {
		t.Errorf("the second: %d %v", status, late)
	}
	if status, second := send(t, api, "PUT", rules, `{"rules":"scrub email"}`, ""); status != 200 || second["version"] != 2.0 {
		t.Errorf("changed: %d %v", status, second)
	}
	if status, restored := send(t, api, "POST", rules+"/versions/1/restore", `{"note":"back","if_version":2}`, ""); status != 200 ||
		restored["version"] != 3.0 || restored["rules"] != "ignore function:a" || restored["restored"] != 1.0 {
		t.Errorf("restored: %d %v", status, restored)
	}
	if status, read := send(t, api, "GET", rules+"/versions/2", "", ""); status != 200 || read["rules"] != "scrub email" {
		t.Errorf("read: %d %v", status, read)
	}
	_, list := send(t, api, "GET", rules+"/versions?limit=2", "", "")
	items := list["items"].([]any)
	if len(items) != 2 || items[0].(map[string]any)["version"] != 3.0 || list["next_cursor"] == nil {
		t.Fatalf("listed: %v", list)
	}
	_, rest := send(t, api, "GET", rules+"/versions?limit=2&cursor="+list["next_cursor"].(string), "", "")
	if items := rest["items"].([]any); len(items) != 1 || items[0].(map[string]any)["version"] != 1.0 {
		t.Errorf("the rest: %v", rest)
	}
	for _, path := range []string{"/versions/9", "/versions/x", "/versions/0"} {
		if status, none := send(t, api, "GET", rules+path, "", ""); status != 404 {
			t.Errorf("%s: %d %v", path, status, none)
		}
		if status, none := send(t, api, "POST", rules+path+"/restore", `{}`, ""); status != 404 {
			t.Errorf("%s: %d %v", path, status, none)
		}
	}
}

// Each fault is named with its line; nothing is read of other projects.
func TestRuleRefusals(t *testing.T) {
	api := newAPI(t)
	for body, pointer := range map[string]string{
		`{"rules":"own path:a\nscrub /a(/"}`: "/rules", `{"rules":"","note":"a\nb"}`: "/note", `{"rules":"` + strings.Repeat("#", 17000) + `"}`: "/rules",
	} {
		status, refused := send(t, api, "PUT", rules, body, "")
		faults, _ := refused["errors"].([]any)
		if status != 400 || len(faults) != 1 || faults[0].(map[string]any)["pointer"] != pointer {
			t.Errorf("%.60s: %d %v, want a fault at %q", body, status, refused, pointer)
		}
	}
	if status, refused := send(t, api, "POST", rules+"/preview", `{"rules":"own path:a\n own"}`, ""); status != 400 || !strings.Contains(fmt.Sprint(refused), "Line 2, character 5") {
		t.Errorf("a preview: %d %v", status, refused)
	}
	for _, path := range []string{"", "/versions", "/versions/1"} {
		if status, refused := send(t, api, "GET", "/v1/projects/lair/error-rules"+path, "", ""); status != 404 {
			t.Errorf("of another project: %d %v", status, refused)
		}
	}
	for _, of := range [][2]string{{"PUT", ""}, {"POST", "/preview"}, {"POST", "/versions/1/restore"}} {
		if status, refused := send(t, api, of[0], "/v1/projects/lair/error-rules"+of[1], `{"rules":""}`, ""); status != 404 {
			t.Errorf("of another project: %d %v", status, refused)
		}
	}
}

// Of many who change the same version, one wins.
func TestConcurrentRules(t *testing.T) {
	api := newAPI(t)
	var mu sync.Mutex
	won := 0
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			status, answer := send(t, api, "PUT", rules, fmt.Sprintf(`{"rules":"# %d","if_version":0}`, i), "")
			mu.Lock()
			defer mu.Unlock()
			switch status {
			case 200:
				won++
			case 409, 429:
			default:
				t.Errorf("%d %v", status, answer)
			}
		})
	}
	all.Wait()
	if _, read := send(t, api, "GET", rules, "", ""); won != 1 || read["version"] != 1.0 {
		t.Errorf("%d won: %v", won, read)
	}
}

// A preview tells which groups would be one, and which several.
func TestPreview(t *testing.T) {
	api := newAPIAt(t, func() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) })
	status, made := send(t, api, "POST", rules+"/preview", `{"rules":"same \"All\" type:*Error"}`, "")
	joins, _ := made["joins"].([]any)
	if status != 200 || made["groups"] != 2.0 || made["samples"] != 3.0 || len(joins) != 1 {
		t.Fatalf("joins: %d %v", status, made)
	}
	join := joins[0].(map[string]any)
	into := join["into"].(map[string]any)
	if len(join["groups"].([]any)) != 2 || into["id"] != nil || into["title"] != "All" || into["rule"] != `same "All" type:*Error` || into["samples"] != 3.0 {
		t.Errorf("%v", join)
	}
	_, made = send(t, api, "POST", rules+"/preview", `{"rules":"ignore function:b\nignore function:e -type:Other"}`, "")
	if splits := made["splits"].([]any); len(splits) != 1 || len(splits[0].(map[string]any)["into"].([]any)) != 2 {
		t.Errorf("splits: %v", made)
	}
	_, made = send(t, api, "POST", rules+"/preview", `{"rules":"group by metadata.tenant where type:AlphaError"}`, "")
	if made["unknown_samples"] != 2.0 {
		t.Errorf("unknown: %v", made)
	}
}
