package http_test

import "testing"

// Rules are set by one of two, read, applied, and refused with a pointer to what is wrong.
func TestOwners(t *testing.T) {
	api := newAPI(t)
	const path = "/v1/projects/shop/error-owners"
	if status, none := send(t, api, "GET", path, "", ""); status != 200 || none["since"] != nil || len(none["rules"].([]any)) != 0 {
		t.Errorf("none: %d %v", status, none)
	}
	status, set := send(t, api, "PUT", path, `{"rules":[{"path":"A.java","assignee":"alpha"},{"environment":"prod","service":"x","assignee":"mem_1"}]}`, "")
	if status != 200 || set["actor"] != "key_1" || set["since"] == nil {
		t.Fatalf("set: %d %v", status, set)
	}
	if _, read := send(t, api, "GET", path, "", ""); read["since"] != set["since"] || read["rules"].([]any)[1].(map[string]any)["service"] != "x" {
		t.Errorf("read: %v", read)
	}
	if status, late := send(t, api, "PUT", path, `{"rules":[],"if_since":"2026-01-01T00:00:00Z"}`, ""); status != 409 || late["code"] != "version_conflict" {
		t.Errorf("the second: %d %v", status, late)
	}
	if status, done := send(t, api, "POST", path+"/apply", "", ""); status != 200 || done["assigned"] != 2.0 || done["looked_at"] != 2.0 || done["next_cursor"] != nil {
		t.Errorf("applied: %d %v", status, done)
	}
	if _, list := send(t, api, "GET", "/v1/projects/shop/error-groups?assignee=alpha", "", ""); len(list["items"].([]any)) != 2 {
		t.Errorf("assigned: %v", list)
	}
	for body, pointer := range map[string]string{
		`{"rules":[{"assignee":"a"}]}`: "/rules/0", `{"rules":[{"path":"a"}]}`: "/rules/0/assignee", `{"rules":[{"host":"a\nb","assignee":"a"}]}`: "/rules/0/host",
	} {
		status, refused := send(t, api, "PUT", path, body, "")
		if faults, _ := refused["errors"].([]any); status != 400 || len(faults) != 1 || faults[0].(map[string]any)["pointer"] != pointer {
			t.Errorf("%s: %d %v", body, status, refused)
		}
	}
	if status, none := send(t, api, "GET", "/v1/projects/lair/error-owners", "", ""); status != 404 {
		t.Errorf("of a project of others: %d %v", status, none)
	}
}
