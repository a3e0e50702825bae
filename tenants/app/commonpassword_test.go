package app_test

import (
	"strings"
	"testing"
)

// Common passwords are refused wherever one is set, with a remedy, and never shown.
func testCommonPasswordsAreRefused(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme Rockets")
	b := p.signedIn(t, acme, "owner")
	id := p.add(t, acme.organization, "bob@common.example", "viewer")
	common := []string{"password1234", "qwertyuiop123", "aaaaaaaaaaaa", "P@ssw0rd1234", "AcmeRockets1", "adaada123456"}
	for i, chosen := range common {
		wanted := member(acme.organization, "new@common.example", "viewer")
		wanted["password"] = chosen
		got := p.call(t, operatorToken, "POST", "/v1/members", text(wanted))
		if pointers := pointersOf(got); got.status != 400 || len(pointers) != 1 || pointers[0] != "/password" || !strings.Contains(got.text, "Use several words") {
			t.Errorf("%s: %d %s", chosen, got.status, got.text)
		}
		if i > 0 {
			continue
		}
		code := p.must(t, 201, "POST", "/v1/members/"+id+"/reset-code", "").get("code")
		invited := codeOf(t, "weirinv", p.must(t, 201, "POST", "/v1/invitations",
			text(map[string]any{"organization": acme.organization, "email": "eve@common.example", "role": "viewer"})).text)
		for page, got := range map[string]page{
			"change": b.post(t, accountPage+"/password", map[string]string{"current_password": password, "password": chosen}),
			"reset":  p.browser("192.0.2.50").post(t, "/console/reset", map[string]string{"code": code, "password": chosen}),
			"join": p.browser("192.0.2.51").post(t, "/console/join",
				map[string]string{"code": invited, "email": "eve@common.example", "name": "Eve", "password": chosen}),
		} {
			if got.status != 422 || !strings.Contains(got.text(), "among the first that are guessed") || strings.Contains(got.body, chosen) {
				t.Errorf("%s: %d %s", page, got.status, got.body)
			}
		}
	}
	for _, chosen := range common {
		if strings.Contains(p.world.log.String(), chosen) {
			t.Errorf("%q is logged", chosen)
		}
	}
}
