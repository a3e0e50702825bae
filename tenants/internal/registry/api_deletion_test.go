package registry_test

import (
	"testing"
	"time"
)

// Operators delete and restore organizations and
// projects; an organization's token does neither.
func TestAPIOfDeletions(t *testing.T) {
	r := open(t, 1)
	r.services.Deletions = r.services.Deletions.Within(time.Hour)
	for _, path := range []string{"/v1/projects/prj_a", "/v1/organizations/org_a"} {
		if status, answer := r.call(t, "org_a", "DELETE", path, ""); status != 403 {
			t.Errorf("%s by its token: %d %v", path, status, answer)
		}
		if status, answer := r.call(t, "", "DELETE", path, ""); status != 202 || answer["state"] != "deleting" {
			t.Errorf("%s is deleted: %d %v", path, status, answer)
		}
		if status, answer := r.call(t, "org_a", "GET", path, ""); status != 404 && status != 405 {
			t.Errorf("%s after that: %d %v", path, status, answer)
		}
		if status, answer := r.call(t, "", "GET", "/v1/deletions?organization=org_a", ""); status != 200 || len(answer["items"].([]any)) == 0 {
			t.Errorf("the deletions: %d %v", status, answer)
		}
		if status, answer := r.call(t, "org_a", "POST", path+"/restore", ""); status != 403 {
			t.Errorf("%s is restored by its token: %d %v", path, status, answer)
		}
		if status, answer := r.call(t, "", "POST", path+"/restore", ""); status != 200 || answer["state"] != "cancelled" {
			t.Errorf("%s is restored: %d %v", path, status, answer)
		}
	}
	if status, first := r.call(t, "", "GET", "/v1/deletions?organization=org_a&limit=1", ""); status != 200 || first["next_cursor"] == nil {
		t.Errorf("the first of two deletions: %d %v", status, first)
	}
	if status, list := r.call(t, "org_a", "GET", "/v1/service-tokens", ""); status != 200 || len(list["items"].([]any)) != 1 {
		t.Errorf("the service tokens of what was restored: %d %v", status, list)
	}
}
