package signin_test

import (
	"regexp"
	"testing"

	"github.com/weirlog/weir/tenants/internal/password"
)

// The console redirects signed-in members to their start,
// others to the sign-in; an unknown page is not found.
func TestTheConsolesStart(t *testing.T) {
	s := openSite(t, password.ForTests(), nil)
	stranger, ada := s.browser("192.0.2.9"), s.signedIn(t, "ada")
	for _, path := range []string{"/console", "/console/"} {
		if got := stranger.get(t, path); got.status != 303 || got.at() != signInPage {
			t.Errorf("%s to a stranger: %d to %q", path, got.status, got.at())
		}
		if got := ada.get(t, path); got.status != 303 || got.at() == signInPage {
			t.Errorf("%s to who has signed in: %d to %q", path, got.status, got.at())
		}
	}
	if got := ada.get(t, "/console/settings"); got.status != 303 {
		t.Errorf("the settings: %d %s", got.status, got.body)
	}
	asset := regexp.MustCompile(`/console/assets/[^"]+`).FindString(stranger.get(t, signInPage).body)
	if got := stranger.get(t, asset); got.status != 200 {
		t.Errorf("%s: %d %s", asset, got.status, got.body)
	}
	if got := stranger.get(t, "/console/nothing"); got.status != 404 {
		t.Errorf("a page that is none: %d %s", got.status, got.body)
	}
}
