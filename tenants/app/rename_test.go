package app_test

import (
	"errors"
	"testing"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv"
)

// What is renamed has its new name everywhere, even in other services.
func testRenames(t *testing.T, p *process) {
	n := p.world.follow(t)
	acme := p.tenant(t, "Acme")
	for path, list := range map[string]string{
		"/v1/organizations/" + acme.organization: "/v1/organizations",
		"/v1/projects/" + acme.project:           "/v1/projects",
	} {
		renamed := p.call(t, acme.token, "PATCH", path, `{"name":" Zenith "}`)
		if renamed.status != 200 || renamed.get("name") != "Zenith" {
			t.Errorf("%s: %d %s", path, renamed.status, renamed.text)
		}
		if again := p.call(t, acme.token, "PATCH", path, `{"name":"Zenith"}`); again.text != renamed.text {
			t.Errorf("%s again: %s", path, again.text)
		}
		if items := p.call(t, acme.token, "GET", list, "").items(t); len(items) != 1 || items[0]["name"] != "Zenith" {
			t.Errorf("%s: %v", list, items)
		}
		if got := p.call(t, acme.token, "PATCH", path, `{"name":""}`); got.status != 400 || len(pointersOf(got)) != 1 {
			t.Errorf("%s without a name: %d %s", path, got.status, got.text)
		}
	}
	if got := p.call(t, acme.token, "GET", "/v1/organizations/"+acme.organization, ""); got.get("name") != "Zenith" {
		t.Errorf("the organization: %d %s", got.status, got.text)
	}
	testenv.Eventually(t, timeout, func() error {
		published := map[string]int{}
		for _, kind := range n.facts(t, acme.organization) {
			published[kind]++
		}
		if published[contract.TypeOrganizationRenamed] != 1 || published[contract.TypeProjectRenamed] != 1 {
			return errors.New(text(published))
		}
		return nil
	})
}
