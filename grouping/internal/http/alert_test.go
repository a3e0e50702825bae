package http_test

import (
	"fmt"
	"testing"
)

const alerts = "/v1/projects/shop/error-alerts"

// An alert is made, read, changed by one of two, tested once a minute, and gone.
func TestAlerts(t *testing.T) {
	api := newAPI(t)
	status, made := send(t, api, "POST", alerts, `{"name":"Shop","triggers":["new","many"],"count":100,"per":"hour","environments":["prod"],"levels":["error","fatal"],
		"q":"pay  \"a card\"","hours":{"days":["mon","fri"],"from":"08:00","to":"18:30","time_zone":"Europe/Berlin"},"mail_roles":["developer"],"mail_members":["mem_1"],"webhooks":["whk_1"]}`, "")
	hours, _ := made["hours"].(map[string]any)
	if status != 201 || made["new_from"] != 2.0 || made["gap_seconds"] != 300.0 || made["q"] != `pay "a card"` || made["per"] != "hour" || made["version"] != 1.0 ||
		hours["to"] != "18:30" || hours["time_zone"] != "Europe/Berlin" || made["next_at"] != nil || made["updated_by"] != "key_1" {
		t.Fatalf("made: %d %v", status, made)
	}
	if reaches := fmt.Sprint(made["reaches"], made["webhooks"]); reaches != "map[members:1 webhooks:[whk_1]] [whk_1]" {
		t.Errorf("it reaches %s", reaches)
	}
	path := alerts + "/" + made["id"].(string)
	if _, list := send(t, api, "GET", alerts, "", ""); len(list["items"].([]any)) != 1 {
		t.Errorf("listed: %v", list)
	}
	const other = `{"name":"Shop","triggers":["regressed"],"muted_until":"2026-12-01T00:00:00Z","version":1}`
	if status, changed := send(t, api, "PUT", path, other, ""); status != 200 || changed["version"] != 2.0 || changed["hours"] != nil || fmt.Sprint(changed["reaches"]) != "map[members:0 webhooks:[]]" || changed["muted_until"] == nil {
		t.Errorf("changed: %d %v", status, changed)
	}
	if status, late := send(t, api, "PUT", path, other, ""); status != 409 || late["code"] != "conflict" {
		t.Errorf("the second: %d %v", status, late)
	}
	if status, read := send(t, api, "GET", path, "", ""); status != 200 || read["version"] != 2.0 {
		t.Errorf("read: %d %v", status, read)
	}
	if status, tested := send(t, api, "POST", path+"/test", "", ""); status != 202 {
		t.Errorf("tested: %d %v", status, tested)
	}
	if status, again := send(t, api, "POST", path+"/test", "", ""); status != 409 {
		t.Errorf("tested again: %d %v", status, again)
	}
	_, log := send(t, api, "GET", path+"/log", "", "")
	if items := log["items"].([]any); len(items) != 1 || items[0].(map[string]any)["outcome"] != "tested" {
		t.Errorf("its log: %v", log)
	}
	if status, gone := send(t, api, "DELETE", path+"?version=1", "", ""); status != 409 {
		t.Errorf("of another version: %d %v", status, gone)
	}
	if status, gone := send(t, api, "DELETE", path, "", ""); status != 200 || gone["id"] != made["id"] {
		t.Errorf("deleted: %d %v", status, gone)
	}
	if status, none := send(t, api, "GET", path, "", ""); status != 404 {
		t.Errorf("when it is gone: %d %v", status, none)
	}
}

// A fault of an alert is named; a project has so many.
func TestAlertRefusals(t *testing.T) {
	api := newAPI(t)
	for body, pointer := range map[string]string{
		`{"name":"","triggers":["new"]}`: "/name", `{"name":"S","triggers":[]}`: "/triggers", `{"name":"S","triggers":["new"],"q":"is:open"}`: "/q", `{"name":"S","triggers":["new"],"q":"level:loud"}`: "/q", `{"name":"S","triggers":["new"],"q":"assigned:me"}`: "/q", `{"name":"S","triggers":["new"],"q":"assigned:mem_gone"}`: "/q",
		`{"name":"S","triggers":["new"],"mail_members":["mem_1","mem_gone"]}`: "/mail_members", `{"name":"S","triggers":["new"],"webhooks":["whk_1","whk_gone"]}`: "/webhooks", `{"name":"S","triggers":["new"],"count":3}`: "/count",
		`{"name":"S","triggers":["many"],"count":3,"per":"year"}`:        "/per",
		`{"name":"S","triggers":["users"],"users":3,"users_per":"year"}`: "/users_per", `{"name":"S","triggers":["users"],"users_per":"day"}`: "/users",
		`{"name":"S","triggers":["new"],"users":1}`: "/users", `{"name":"S","triggers":["new"],"levels":["loud"]}`: "/levels",
		`{"name":"S","triggers":["new"],"hours":{"from":"8","to":"18:00"}}`: "/hours/from", `{"name":"S","triggers":["new"],"new_from":0}`: "/new_from",
		`{"name":"S","triggers":["new"],"hours":{"from":"08:00","to":"18:00","days":["someday"]}}`: "/hours/days",
		`{"name":"S","triggers":["new"],"mail_roles":["billing"]}`:                                 "/mail_roles", `{"name":"S","triggers":["new"],"muted_until":"2999-01-01T00:00:00Z"}`: "/muted_until",
	} {
		status, refused := send(t, api, "POST", alerts, body, "")
		faults, _ := refused["errors"].([]any)
		if status != 400 || len(faults) != 1 || faults[0].(map[string]any)["pointer"] != pointer {
			t.Errorf("%s: %d %v, want a fault at %q", body, status, refused, pointer)
		}
	}
	if status, refused := send(t, api, "POST", "/v1/projects/lair/error-alerts", `{"name":"S","triggers":["new"]}`, ""); status != 404 {
		t.Errorf("of another project: %d %v", status, refused)
	}
	for n := range 51 {
		status, made := send(t, api, "POST", alerts, `{"name":"S","triggers":["new"]}`, "")
		if full := n == 50; full != (status == 409) || full && made["code"] != "limit_reached" {
			t.Errorf("alert %d: %d %v", n, status, made)
		}
	}
}
