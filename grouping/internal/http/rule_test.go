package http_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

const rules = "/v1/projects/shop/error-rules"

// Rules are set, changed, listed and restored; an Idempotency-Key answers again what was.
func TestRules(t *testing.T) {
	api := newAPI(t)
	var cursor string
	for _, step := range []struct {
		method, path, body, key string
		want                    map[string]any
	}{
		{"GET", "", "", "", map[string]any{"version": 0.0, "rules": "", "since": nil}},
		{"PUT", "", `{"rules":"ignore function:a","note":"noise","if_version":0}`, "once", map[string]any{"version": 1.0, "note": "noise", "actor": "key_1"}},
		{"PUT", "", `{"rules":"ignore function:a","if_version":0}`, "", map[string]any{"version": 1.0, "note": "noise"}},
		{"PUT", "", `{"rules":"","if_version":0}`, "", map[string]any{"code": "version_conflict", "version": 1.0}},
		{"PUT", "", `{"rules":"scrub email"}`, "", map[string]any{"version": 2.0}},
		{"PUT", "", `{"rules":"ignore function:a","note":"noise","if_version":0}`, "once", map[string]any{"version": 1.0}},
		{"POST", "/versions/1/restore", `{"note":"back","if_version":2}`, "", map[string]any{"version": 3.0, "rules": "ignore function:a", "restored": 1.0}},
		{"POST", "/versions/1/restore", `{"note":"back","if_version":2}`, "", map[string]any{"version": 3.0}},
		{"GET", "/versions/2", "", "", map[string]any{"rules": "scrub email"}},
		{"GET", "/versions?limit=2", "", "", nil},
		{"GET", "/versions?limit=2&cursor=", "", "", map[string]any{"next_cursor": nil}},
	} {
		if strings.HasSuffix(step.path, "cursor=") {
			step.path += cursor
		}
		status, answer := send(t, api, step.method, rules+step.path, step.body, step.key)
		for name, want := range step.want {
			if answer[name] != want {
				t.Errorf("%s %s %s: %d %v, want %s %v", step.method, step.path, step.body, status, answer, name, want)
			}
		}
		cursor, _ = answer["next_cursor"].(string)
	}
	for _, path := range []string{"/versions/9", "/versions/x"} {
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
		`{"note":"a"}`: "/rules", `{"rules":null}`: "/rules",
	} {
		status, refused := send(t, api, "PUT", rules, body, "")
		faults, _ := refused["errors"].([]any)
		if status != 400 || len(faults) != 1 || faults[0].(map[string]any)["pointer"] != pointer {
			t.Errorf("%.60s: %d %v, want a fault at %q", body, status, refused, pointer)
		}
	}
	if status, refused := send(t, api, "POST", rules+"/preview", `{}`, ""); status != 400 {
		t.Errorf("a preview of nothing: %d %v", status, refused)
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
