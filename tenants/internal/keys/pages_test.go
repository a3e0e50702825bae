package keys_test

import (
	"maps"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/keys"
	"github.com/weirlog/weir/tenants/internal/tenantstest"
)

var wholeKey = regexp.MustCompile(`weir_[0-9a-f]{48}`)

// issue issues a key of prod, and returns its id.
func (r room) issue(t *testing.T) string {
	t.Helper()
	status, made := r.call(t, "org_a", "POST", "/v1/api-keys", newKey)
	if status != 201 {
		t.Fatalf("made: %d %v", status, made)
	}
	return made["id"].(string)
}

// The form of a new key offers what the reader may choose, and shows faults.
func TestFormOfANewKey(t *testing.T) {
	r := open(t)
	tenantstest.Want(t, "to an admin", r.page(t, tenants.Admin, "GET", "/new?project=prj_a", nil), 200, `value="prod"`)
	if got := r.page(t, tenants.Developer, "GET", "/new", nil); got.Code != 200 || strings.Contains(got.Body.String(), `value="prod"`) {
		t.Errorf("to a developer: %d %s", got.Code, got.Body)
	}
	tenantstest.Want(t, "to a viewer", r.page(t, tenants.Viewer, "GET", "/new", nil), 403, "Your role here is viewer")
	issue := func(typed url.Values) *httptest.ResponseRecorder {
		form := url.Values{"name": {"typed name"}, "project": {"prj_a"}, "environment": {"dev"}, "ends": {"never"}}
		maps.Copy(form, typed)
		return r.page(t, tenants.Admin, "POST", "", form)
	}
	for _, c := range []struct {
		field string
		typed url.Values
		shown string
	}{
		{"name", url.Values{"name": {" "}}, `value=" "`},
		{"environment", url.Values{"environment": {"production"}}, `value="prj_a" selected`},
		{"ends", url.Values{"ends": {"tomorrow"}}, `value="typed name"`},
		{"ends_on", url.Values{"ends": {"date"}, "ends_on": {"2027-31-01"}}, `value="2027-31-01"`},
		{"ends_on", url.Values{"ends": {"date"}, "ends_on": {"2001-01-01"}}, `value="2001-01-01"`},
		{"rate_per_minute", url.Values{"rate_per_minute": {"0"}}, `value="0"`},
		{"access", url.Values{"access": {"read"}}, `value="typed name"`},
		{"origins", url.Values{"origins": {"shop.example"}, "access": {"write"}, "rate_per_minute": {"60"}}, `value="shop.example"`},
		{"access", url.Values{"origins": {"https://shop.example"}, "access": {"full"}, "rate_per_minute": {"60"}}, `value="https://shop.example"`},
	} {
		got := issue(c.typed)
		tenantstest.Want(t, c.field, got, 422, `id="fault-`+c.field+`"`)
		tenantstest.Want(t, c.field, got, 422, c.shown)
	}
	tenantstest.Want(t, "a project of nobody", issue(url.Values{"project": {"a\x00b"}}), 404, "")
	if _, list := r.call(t, "org_a", "GET", "/v1/api-keys?project=prj_a", ""); len(list["items"].([]any)) != 1 {
		t.Errorf("refused forms made keys: %v", list)
	}
	ofPages := issue(url.Values{
		"origins": {"https://shop.example, https://www.shop.example"}, "access": {"write"}, "rate_per_minute": {"60"}, "handling": {"lenient"},
	}).Body.String()
	if !strings.Contains(ofPages, "Hello from a page") || strings.Contains(ofPages, "hello.mjs") {
		t.Errorf("a key of web pages is shown with what it can't do: %s", ofPages)
	}
	_, list := r.call(t, "org_a", "GET", "/v1/api-keys?project=prj_a", "")
	last := list["items"].([]any)[1].(map[string]any)
	if last["lenient"] != true || len(last["origins"].([]any)) != 2 {
		t.Errorf("a key of web pages: %v", last)
	}
	tenantstest.Want(t, "its page", r.page(t, tenants.Admin, "GET", "/"+last["id"].(string), nil), 200, "https://www.shop.example")
	issue(url.Values{"ends": {"date"}, "ends_on": {"2099-12-31"}})
	tenantstest.Want(t, "the end of its last day", r.page(t, tenants.Admin, "GET", "", nil), 200, `datetime="2100-01-01T00:00:00Z"`)
	if list := r.page(t, tenants.Admin, "GET", "", nil).Body.String(); strings.Contains(list, ">soon<") {
		t.Errorf("a key of 2099 expires soon: %s", list)
	}
	issue(url.Values{"ends": {"date"}, "ends_on": {tenantstest.Now().AddDate(0, 0, 3).Format("2006-01-02")}})
	tenantstest.Want(t, "a key of three days", r.page(t, tenants.Admin, "GET", "", nil), 200, ">soon<")
}

// A key is changed by its form, by those
// who may change keys of its environment.
func TestFormOfAChange(t *testing.T) {
	r := open(t)
	id := r.issue(t)
	form := url.Values{"name": {"renamed"}, "rate_per_minute": {""}, "access": {"write"}}
	tenantstest.Want(t, "as developer", r.page(t, tenants.Developer, "POST", "/"+id+"/edit", form), 403, "Your role here is developer")
	tenantstest.Want(t, "another's", r.page(t, tenants.Admin, "POST", "/key_b/edit", form), 404, "key_b")
	tenantstest.Want(t, "as admin", r.page(t, tenants.Admin, "POST", "/"+id+"/edit", form), 303, "")
	if _, changed := r.call(t, "org_a", "GET", "/v1/api-keys/"+id, ""); changed["name"] != "renamed" || changed["rate_per_minute"] != nil || changed["access"] != "write" {
		t.Errorf("changed: %v", changed)
	}
	for _, c := range []struct{ field, value string }{{"name", " "}, {"rate_per_minute", "many"}, {"rate_per_minute", "101"}, {"access", "none"}} {
		bad := url.Values{"name": {"renamed"}, c.field: {c.value}}
		tenantstest.Want(t, c.field, r.page(t, tenants.Admin, "POST", "/"+id+"/edit", bad), 422, `id="fault-`+c.field+`"`)
	}
	r.page(t, tenants.Admin, "POST", "/"+id+"/revoke", url.Values{"reason": {""}})
	tenantstest.Want(t, "once revoked", r.page(t, tenants.Admin, "POST", "/"+id+"/edit", form), 409, "This key is revoked")
}

// A rotation shows the new key once; the old one is not rotated again.
func TestFormOfARotation(t *testing.T) {
	r := open(t)
	id := r.issue(t)
	path, form := "/"+id+"/rotate", url.Values{"overlap_seconds": {"3600"}, "form": {"form_1"}}
	tenantstest.Want(t, "as developer", r.page(t, tenants.Developer, "POST", path, form), 403, "Your role here is developer")
	for _, overlap := range []string{"soon", "604801"} {
		tenantstest.Want(t, overlap, r.page(t, tenants.Admin, "POST", path, url.Values{"overlap_seconds": {overlap}}), 422, `id="fault-overlap_seconds"`)
	}
	rotated := r.page(t, tenants.Admin, "POST", path, form)
	secret := wholeKey.FindString(rotated.Body.String())
	if rotated.Code != 201 || secret == "" {
		t.Fatalf("rotated: %d %s", rotated.Code, rotated.Body)
	}
	if _, old := r.call(t, "org_a", "GET", "/v1/api-keys/"+id, ""); old["rotated_to"] == nil || old["expires_at"] != "2026-11-20T14:00:00Z" {
		t.Errorf("the old one: %v", old)
	}
	again := r.page(t, tenants.Admin, "POST", path, form)
	if tenantstest.Want(t, "the form again", again, 409, "was shown once"); strings.Contains(again.Body.String(), secret) {
		t.Error("the form again shows the key")
	}
	form.Set("form", "form_2")
	tenantstest.Want(t, "another form", r.page(t, tenants.Admin, "POST", path, form), 409, "another one takes its place")
}

// The page of a new key shows when its first log has arrived.
func TestFirstEventIsAwaited(t *testing.T) {
	r := open(t)
	id := r.issue(t)
	path := "/" + id + "/first-event"
	tenantstest.Want(t, "before", r.page(t, tenants.Viewer, "GET", path, nil), 202, "Waiting for the first event")
	used := tenants.UsedAPIKey{Organization: "org_a", APIKey: id}
	used.Accepted, used.FirstAcceptedAt, used.LastUsedAt = 1, tenantstest.Noon, tenantstest.Noon
	err := pg.InTxAsSystem(t.Context(), r.pool, func(tx pgx.Tx) error {
		return keys.AddUsage(t.Context(), tx, []tenants.UsedAPIKey{used})
	})
	testenv.Must(t, err)
	tenantstest.Want(t, "after", r.page(t, tenants.Viewer, "GET", path, nil), 200, "The first event came on")
	r.call(t, "org_a", "POST", "/v1/api-keys/"+id+"/rotate", "")
	tenantstest.Want(t, "once rotated", r.page(t, tenants.Viewer, "GET", "/"+id, nil), 200, "Nobody has used this one since")
	tenantstest.Want(t, "another's", r.page(t, tenants.Viewer, "GET", "/key_b/first-event", nil), 404, "key_b")
}
