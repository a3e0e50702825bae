package console_test

import (
	"net/url"
	"testing"
)

// A developer tries rules, saves and reopens them; who comes second sees that,
// and a viewer only reads.
func TestRulesPage(t *testing.T) {
	d := newDesk(t)
	const path = "/console/logs/rules"
	form := func(version, rules, does string) string {
		return url.Values{"project": {"prj_1"}, "version": {version}, "rules": {rules}, "note": {"because"}, "do": {does}}.Encode()
	}
	d.page("2", path, 200, `name="version" value="0"`, "What a rule looks like", "card-number", "Shop")
	d.page("1", path, 200, "Your role may not set any")
	for _, does := range []string{"save", "preview"} {
		d.post("2", path, form("0", "# <x>\r\ndrop level:loud", does), 422, `Line 2, character 6: "level:loud" is not a level.`, "drop level:loud", "autofocus")
	}
	d.post("2", path, url.Values{"project": {"prj_1"}, "version": {"0"}, "rules": {"drop a"}, "note": {"a\nb"}, "do": {"save"}}.Encode(), 422, `id="fault-note"`)
	d.post("2", path, form("0", "drop a", "preview"), 200, "Nothing is saved yet")
	d.page("2", path, 200, `name="version" value="0"`)
	if leads := d.post("2", path, form("0", "# <people>\r\nredact email", "save"), 303); leads != path+"?project=prj_1" {
		t.Errorf("saved, and then %s", leads)
	}
	d.page("2", path, 200, "# <people>\nredact email", "because", "you", "in force")
	d.page("1", path, 200, "redact email", "Your role may not change rules")
	d.post("3", path, form("0", "drop a", "save"), 409, "Somebody has saved version 1 meanwhile", `name="version" value="1"`)
	d.post("3", path, form("1", "", "save"), 303)
	d.page("2", path+"?project=prj_1&version=1", 200, "redact email", "As in version 1", `name="version" value="2"`, "Open version 1")
	d.post("1", path, form("2", "drop a", "save"), 403)
	for _, none := range []string{"?project=prj_2", "?project=prj_1&version=9", "?project=prj_1&version=x"} {
		d.page("2", path+none, 404)
	}
	d.post("2", path, form("x", "drop a", "save"), 404)
}
