package http_test

import (
	"fmt"
	nethttp "net/http"
	"strings"
	"testing"
)

// Groups are merged and taken apart; the id of a member stands for the whole.
func TestMerge(t *testing.T) {
	api := newAPI(t)
	_, list := get(t, api, "/v1/projects/shop/error-groups")
	first, second := list["items"].([]any)[0].(map[string]any), list["items"].([]any)[1].(map[string]any)
	into, other := "/v1/error-groups/"+first["id"].(string), "/v1/error-groups/"+second["id"].(string)
	for range 2 {
		status, merged := send(t, api, nethttp.MethodPost, other+"/merge", fmt.Sprintf(`{"into":%q,"if_version":0}`, first["id"]), "once")
		if status != 200 || merged["id"] != first["id"] || merged["merged"] != 1.0 || merged["count"] != 3.0 || merged["version"] != 1.0 {
			t.Fatalf("merged: %d %v", status, merged)
		}
	}
	if _, list = get(t, api, "/v1/projects/shop/error-groups"); len(list["items"].([]any)) != 1 {
		t.Errorf("listed: %v", list)
	}
	_, found := get(t, api, other)
	if members, _ := found["members"].([]any); found["id"] != first["id"] || len(members) != 1 || members[0].(map[string]any)["count"] != second["count"] || len(found["occurrences"].([]any)) != 3 {
		t.Errorf("instead of the member: %v", found)
	}
	if status, decided := patch(t, api, other, `{"status":"resolved","if_version":1}`, ""); status != 200 || decided["id"] != first["id"] || decided["status"] != "resolved" {
		t.Errorf("decided about the member: %d %v", status, decided)
	}
	if status, again := send(t, api, nethttp.MethodPost, other+"/merge", fmt.Sprintf(`{"into":%q}`, first["id"]), ""); status != 200 || again["version"] != 2.0 {
		t.Errorf("merged again: %d %v", status, again)
	}
	body := fmt.Sprintf(`{"groups":[%q],"if_version":0}`, second["id"])
	if status, conflict := send(t, api, nethttp.MethodPost, into+"/unmerge", body, ""); status != 409 || conflict["version"] != 2.0 || len(conflict["activity"].([]any)) != 2 {
		t.Errorf("of an old version: %d %v", status, conflict)
	}
	if status, apart := send(t, api, nethttp.MethodPost, into+"/unmerge", strings.Replace(body, ":0", ":2", 1), ""); status != 200 || apart["merged"] != 0.0 || apart["count"] != first["count"] {
		t.Errorf("taken apart: %d %v", status, apart)
	}
	if _, found := get(t, api, other); found["id"] != second["id"] || found["status"] != "unresolved" || found["count"] != second["count"] {
		t.Errorf("taken out: %v", found)
	}
	kinds := ""
	for _, path := range []string{into, other} {
		_, activity := get(t, api, path+"/activity")
		for _, item := range activity["items"].([]any) {
			made := item.(map[string]any)
			kinds += fmt.Sprintln(made["kind"], made["into"] == first["id"], made["from"] == first["id"], made["groups"] != nil, made["actor"])
		}
	}
	if kinds != "unmerged false false true key_1\nresolved false false false key_1\nmerged false false true key_1\nunmerged false true false key_1\nmerged true false false key_1\n" {
		t.Error(kinds)
	}
}

func TestMergeRefusals(t *testing.T) {
	api := newAPI(t)
	path := alpha(t, api)
	for _, c := range []struct{ does, body, pointer string }{
		{"/merge", `{}`, "/into"}, {"/merge", `{"into":"grp_0"}`, "/into"}, {"/merge", `{"into":"` + strings.Repeat("g", 60_000) + `"}`, "/into"}, {"/split", `{"hash":"` + strings.Repeat("0", 60_000) + `"}`, "/hash"},
		{"/merge", `{"groups":["grp_0"]}`, "/groups"},
		{"/unmerge", `{}`, "/groups"}, {"/unmerge", `{"groups":["grp_0"]}`, "/groups/0"}, {"/unmerge", `{"groups":["` + strings.Repeat(`g","`, 100) + `"]}`, "/groups"},
	} {
		status, refused := send(t, api, nethttp.MethodPost, path+c.does, c.body, "")
		faults, _ := refused["errors"].([]any)
		if status != 400 || len(faults) != 1 || faults[0].(map[string]any)["pointer"] != c.pointer || len(fmt.Sprint(refused)) > 1000 {
			t.Errorf("%s %.40s: %d %v", c.does, c.body, status, refused)
		}
	}
	if status, body := send(t, api, nethttp.MethodPost, "/v1/error-groups/grp_0/merge", `{"into":"grp_1"}`, ""); status != 404 {
		t.Errorf("what is not there: %d %v", status, body)
	}
}

// A group that is merged into one of its own members stays as it is.
func TestMergeIntoMember(t *testing.T) {
	api := newAPI(t)
	path := alpha(t, api)
	_, list := get(t, api, "/v1/projects/shop/error-groups?q=beta")
	beta := list["items"].([]any)[0].(map[string]any)["id"].(string)
	into := strings.TrimPrefix(path, "/v1/error-groups/")
	if status, body := send(t, api, nethttp.MethodPost, path+"/merge", fmt.Sprintf(`{"into":%q}`, beta), ""); status != 200 || body["id"] != beta {
		t.Fatalf("merged: %d %v", status, body)
	}
	if status, body := send(t, api, nethttp.MethodPost, "/v1/error-groups/"+beta+"/merge", fmt.Sprintf(`{"into":%q}`, into), ""); status != 200 || body["id"] != beta || body["version"] != 1.0 {
		t.Errorf("into its own member: %d %v", status, body)
	}
}

// Errors like a sample are split off; that again changes nothing, and where nothing tells samples apart it is refused.
func TestSplit(t *testing.T) {
	api := newAPI(t)
	path := alpha(t, api)
	_, list := get(t, api, "/v1/projects/shop/error-groups?q=beta")
	beta := "/v1/error-groups/" + list["items"].([]any)[0].(map[string]any)["id"].(string)
	_, group := get(t, api, path)
	_, other := get(t, api, beta)
	samples := group["occurrences"].([]any)
	newest, oldest := samples[0].(map[string]any)["hash"], samples[1].(map[string]any)["hash"]
	if hash := other["occurrences"].([]any)[0].(map[string]any)["hash"]; hash != nil || newest == oldest {
		t.Errorf("the only sample of a group has the hash %v, and those of another have %v and %v", hash, newest, oldest)
	}
	for of, hash := range map[string]any{path: "no hash", beta: newest, path + "/": "", path + "//": fmt.Sprint(newest, "0")} {
		status, refused := send(t, api, nethttp.MethodPost, strings.TrimRight(of, "/")+"/split", fmt.Sprintf(`{"hash":%q}`, hash), "")
		faults, _ := refused["errors"].([]any)
		if status != 400 || len(faults) != 1 || faults[0].(map[string]any)["pointer"] != "/hash" {
			t.Errorf("%s: %d %v", hash, status, refused)
		}
	}
	for range 2 {
		if status, group := send(t, api, nethttp.MethodPost, path+"/split", fmt.Sprintf(`{"hash":%q}`, newest), ""); status != 200 || group["version"] != 1.0 || group["count"] != 2.0 {
			t.Errorf("split: %d %v", status, group)
		}
	}
	_, activity := get(t, api, path+"/activity")
	if items := activity["items"].([]any); len(items) != 1 || items[0].(map[string]any)["kind"] != "split" || items[0].(map[string]any)["into"] == nil {
		t.Errorf("activity: %v", activity)
	}
	if status, conflict := send(t, api, nethttp.MethodPost, path+"/split", fmt.Sprintf(`{"hash":%q,"if_version":0}`, oldest), ""); status != 409 || conflict["version"] != 1.0 {
		t.Errorf("of an old version: %d %v", status, conflict)
	}
}
